// SPDX-License-Identifier: Apache-2.0
#include "control/options/option_set.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace penstock::options {
namespace option_set_test {

using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

enum class Colour : uint8_t { Red, Blue };

// A program with an option of each kind.
struct Program {
    bool listens = true;
    bool is_dry = false;
    bool watches = false;
    Colour colour = Colour::Blue;
    uint32_t burst = 64;
    std::optional<unsigned> core;
    std::chrono::seconds limit{60};
    std::string name = "gw";
    std::string file;
    std::vector<std::string> labels;
    std::vector<uint64_t> numbers;
    OptionSet set;
    Status checked;

    Program() {
        set.add_daemon_group();
        set.group("Settings");
        set.add("listen", on_off(listens), "Listen");
        set.add("dry", on_off_switch(is_dry), "Change nothing");
        set.add("watch,w", flag(watches), "Repeat");
        set.add("colour", one_of(colour, {{"red", Colour::Red}, {"blue", Colour::Blue}}), "Colour");
        set.add("burst", number(burst, {4, 64, "packets"}), "Burst");
        set.add("core", number(core, {.max = 7}), "CPU");
        set.add("limit", duration(limit, {1, 3600, "seconds"}, "SECONDS"), "Limit");
        set.add("name,n", text(name, "NAME").or_variable("TEST_NAME", environment), "Name");
        set.add("file", text_or("none", file, "FILE", parse_file), "File");
        set.add("label", list(labels, "TEXT", any_text, {.is_distinct = true}), "Label");
        set.add(
            "number",
            list(numbers, "N,...", [](const std::string& entry) { return parse_number(entry, {.max = 9}); },
                 {.separator = ','}),
            "Numbers");
    }

    Result<Action> read(const Arguments& arguments) {
        return set.read(arguments, [this] { return checked; });
    }
    std::string error_of(const Arguments& arguments) {
        const auto action = read(arguments);
        return action ? "accepted" : action.error().what;
    }

    inline static std::string environment;
};

TEST(OptionSet, VariablesHoldTheDefaults) {
    Program program;
    EXPECT_EQ(program.read({}), Action::Run);
    EXPECT_TRUE(program.listens);
    EXPECT_FALSE(program.is_dry || program.watches || program.core);
    EXPECT_EQ(program.colour, Colour::Blue);
    EXPECT_EQ(program.burst, 64u);
    EXPECT_EQ(program.limit, 60s);
    EXPECT_EQ(program.name, "gw");
    EXPECT_EQ(program.file, "");
    EXPECT_TRUE(program.labels.empty() && program.set.given().empty());
}

TEST(OptionSet, ReadsEachKind) {
    Program program;
    EXPECT_EQ(program.read({"--listen", "off",     "--dry",     "-w",        "--colour=red", "--burst",
                            "4",        "--core",  "7",         "--limit=5", "-n",           "x",
                            "--file",   "/etc/f",  "--label",   "a,b",       "--label",      "c",
                            "--number", "1, 2,,3", "--number=4"}),
              Action::Run);
    EXPECT_FALSE(program.listens);
    EXPECT_TRUE(program.is_dry && program.watches);
    EXPECT_EQ(program.colour, Colour::Red);
    EXPECT_EQ(program.burst, 4u);
    EXPECT_EQ(program.core, 7u);
    EXPECT_EQ(program.limit, 5s);
    EXPECT_EQ(program.name, "x");
    EXPECT_EQ(program.file, "/etc/f");
    EXPECT_EQ(program.labels, (Arguments{"a,b", "c"}));
    EXPECT_EQ(program.numbers, (std::vector<uint64_t>{1, 2, 3, 4}));
    EXPECT_TRUE(program.set.is_given("name"));
    EXPECT_FALSE(program.set.is_given("version"));
}

TEST(OptionSet, SwitchesTakeTheNextArgumentAsTheirValue) {
    const struct {
        Arguments arguments;
        bool is_dry;
    } kCases[] = {{{"--dry"}, true},         {{"--dry", "on"}, true},    {{"--dry", "off"}, false},
                  {{"--dry=no"}, false},     {{"--dry=1"}, true},        {{"--dry", "--burst=4"}, true},
                  {{"--dry", "true"}, true}, {{"--dry", "false"}, false}};
    for (const auto& each : kCases) {
        Program program;
        ASSERT_TRUE(program.read(each.arguments)) << testing::PrintToString(each.arguments);
        EXPECT_EQ(program.is_dry, each.is_dry) << testing::PrintToString(each.arguments);
    }
    EXPECT_EQ(Program().error_of({"--dry", "stray"}), "--dry: \"stray\" must be on or off");
}

TEST(OptionSet, ErrorsNameTheOptionTheValueAndTheRule) {
    const struct {
        Arguments arguments;
        const char* error;
    } kCases[] = {
        {{"--listen", "maybe"}, "--listen: \"maybe\" must be on or off"},
        {{"--colour", "green"}, "--colour: \"green\" must be red or blue"},
        {{"--burst", "65"}, "--burst: \"65\" must be 4 to 64 packets"},
        {{"--core", "x"}, "--core: \"x\" must be 0 to 7"},
        {{"--limit", "0"}, "--limit: \"0\" must be 1 to 3600 seconds"},
        {{"--file", "here"}, "--file: \"here\" must be the absolute path of a file, or none"},
        {{"--label", "a", "--label", "a"}, "--label: \"a\" is given twice"},
        {{"--number", "1,x"}, "--number: \"x\" must be 0 to 9"},
        {{"--burst", "4", "--burst", "5"}, "--burst: is given twice"},
        {{"--burst"}, "the required argument for option '--burst' is missing"},
        {{"--listen"}, "the required argument for option '--listen' is missing"},
        {{"--bur", "5"}, "unrecognised option '--bur'"},
        {{"--bursts", "5"}, "unrecognised option '--bursts'; did you mean --burst?"},
        {{"stray"}, "unexpected argument \"stray\""},
        {{"--config", "/nonexistent/x.ini"}, "--config: \"/nonexistent/x.ini\" cannot be read"},
    };
    for (const auto& each : kCases) {
        EXPECT_EQ(Program().error_of(each.arguments), each.error);
    }
}

TEST(OptionSet, ErrorsOfAFileNameItsLine) {
    const std::string file = testing::TempDir() + "option-set-test.ini";
    const auto error_of = [&](const char* text, Arguments more = {}) {
        std::ofstream(file) << text;
        more.insert(more.end(), {"--config", file});
        std::string error = Program().error_of(more);
        std::remove(file.c_str());
        return error;
    };
    EXPECT_EQ(error_of("# comment\nburst = 3\n"), file + ":2: --burst: \"3\" must be 4 to 64 packets");
    EXPECT_EQ(error_of("burst = 3\n", {"--burst", "5"}), "accepted");
    EXPECT_EQ(error_of("burst = 5\n", {"--burst", "3"}), "--burst: \"3\" must be 4 to 64 packets");
    EXPECT_EQ(error_of("bust = 5\n"), file + ":1: unrecognised option 'bust'; did you mean burst?");
    EXPECT_EQ(error_of("check-config = on\n"),
              file + ":1: unrecognised option 'check-config': it is an option of the command line only");
    EXPECT_EQ(error_of("burst = 5\nburst = 6\n"), file + ":1,2: --burst: is given twice");
}

TEST(OptionSet, AllMistakesAreReportedAtOnce) {
    const std::string file = testing::TempDir() + "option-set-mistakes.ini";
    std::ofstream(file)
        << "burst = 3\njust words\nbust = 5\nlimit = 0\nlabel = a\nlabel = a\nnumber = 1,x\nnumber "
           "= 2,y\n";
    Program program;
    program.checked =
        fail(Errc::InvalidArgument, "--dry: requires --listen off\n--watch: requires --burst 4");
    EXPECT_EQ(program.error_of({"--bur", "5", "--colour", "green", "stray", "--config", file, "--core"}),
              "unrecognised option '--bur'\n"
              "the required argument for option '--core' is missing\n"
              "unexpected argument \"stray\"\n" +
                  file + ":2: invalid line 'just words': must be NAME = VALUE\n" +  //
                  file + ":3: unrecognised option 'bust'; did you mean burst?\n" +  //
                  "--colour: \"green\" must be red or blue\n" +                     //
                  file + ":1: --burst: \"3\" must be 4 to 64 packets\n" +           //
                  file + ":4: --limit: \"0\" must be 1 to 3600 seconds\n" +         //
                  file + ":5,6: --label: \"a\" is given twice\n" +                  //
                  file + ":7: --number: \"x\" must be 0 to 9\n" +                   //
                  file + ":8: --number: \"y\" must be 0 to 9\n" +                   //
                  file + ": --dry: requires --listen off")
        << "a rule that mentions --burst, which has no valid value, is not judged";
    std::remove(file.c_str());
}

TEST(OptionSet, AFileSetsSwitchesWithAndWithoutAValue) {
    const std::pair<const char*, bool> kCases[] = {
        {"dry = on", true}, {"dry = true", true}, {"dry =", true}, {"dry = off", false}, {"dry = 0", false}};
    for (const auto& [line, is_dry] : kCases) {
        Program program;
        ASSERT_TRUE(program.set.read_ini(line, [] { return Status(); })) << line;
        EXPECT_EQ(program.is_dry, is_dry) << line;
    }
    EXPECT_FALSE(Program().set.read_ini("listen =", [] { return Status(); })) << "no switch";
}

TEST(OptionSet, TheCommandLineReplacesAListOfTheFile) {
    const std::string file = testing::TempDir() + "option-set-list.ini";
    std::ofstream(file) << "label = a\nlabel = b\nnumber = 1\nnumber = 2\n";
    Program program;
    EXPECT_TRUE(program.read({"--label", "c", "--config", file}));
    std::remove(file.c_str());
    EXPECT_EQ(program.labels, Arguments{"c"});
    EXPECT_EQ(program.numbers, (std::vector<uint64_t>{1, 2}));
}

TEST(OptionSet, AVariableReplacesTheDefaultOnly) {
    Program::environment = "variable";
    Program program;
    EXPECT_TRUE(program.read({}));
    EXPECT_EQ(program.name, "variable");
    Program other;
    EXPECT_TRUE(other.read({"--name", "line"}));
    EXPECT_EQ(other.name, "line");
    Program::environment = "";
}

TEST(OptionSet, RulesAboutSeveralOptionsAreCheckedLast) {
    Program program;
    program.checked = fail(Errc::InvalidArgument, "--dry: requires --listen off");
    EXPECT_EQ(program.error_of({"--burst=5"}), "--dry: requires --listen off");
    EXPECT_EQ(program.burst, 5u);
}

TEST(OptionSet, HelpAndVersionNeedNothingElse) {
    EXPECT_EQ(Program().read({"--help", "--burst=0"}), Action::Help);
    EXPECT_EQ(Program().read({"-h", "--version"}), Action::Help);
    EXPECT_EQ(Program().read({"--version"}), Action::Version);
    EXPECT_EQ(Program().read({"--check-config"}), Action::Check);
}

TEST(OptionSet, HelpShowsFormsAndDefaults) {
    const std::string help = Program().set.help();
    for (const char* line :
         {"General:\n", "Settings:\n", "--listen on|off (=on) ", "--dry on|off (=off) ", "-w [ --watch ] ",
          "--colour red|blue (=blue) ", "--burst N (=64) ", "--core N ", "--limit SECONDS (=60) ",
          "-n [ --name ] NAME (=gw) ", "--file FILE (=none) ", "--number N,... "}) {
        EXPECT_NE(help.find(line), std::string::npos) << line << "\n" << help;
    }
    const std::string_view names[] = {"burst", "unknown"};
    EXPECT_EQ(Program().set.help("Some", names).find("Some:\n  --burst N (=64)"), 1U)
        << Program().set.help("Some", names);
    EXPECT_EQ(Program().set.names_in("General"), (Arguments{"help", "version", "config", "check-config"}));
    EXPECT_EQ(Program().set.spellings_with_value(),
              (Arguments{"--config", "--listen", "--dry", "--colour", "--burst", "--core", "--limit",
                         "--name", "-n", "--file", "--label", "--number"}));
}

TEST(OptionSet, WordsAreAllThatIsNoOption) {
    Program program;
    const auto words = program.set.read_words({"get", "-w", "services", "--burst", "5", "x"});
    ASSERT_TRUE(words) << words.error().what;
    EXPECT_EQ(*words, (Arguments{"get", "services", "x"}));
    EXPECT_EQ(program.set.given(), (Arguments{"burst", "watch"}));
    EXPECT_TRUE(program.set.store());
    EXPECT_TRUE(program.watches);
}

}  // namespace option_set_test
}  // namespace penstock::options
