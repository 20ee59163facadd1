// SPDX-License-Identifier: Apache-2.0
#include "control/cli/top/screen.hpp"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "control/cli/options.hpp"

namespace penstock::cli::top {
namespace screen_test {

struct Shown {
    Sample sample{.taken = {},
                  .gateway = "edge-1",
                  .uptime_ms = 11'000,
                  .view = View::Ports,
                  .rows = {},
                  .totals = {},
                  .note = ""};
    Rates rates{.rows = {{"pen0", {1234, 5, 987'654, 0, 0, 0, 2}, "up"},
                         {"pen1", {50, 99'999, 1, 2e9, 0, 0, 0}, "down"}},
                .totals = {1284, 987'655, 100'004, 2e9, 3.25, 12, 1.5},
                .interval_s = 1.0,
                .restarted = false};
};

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

TEST(TopScreen, AFrameOf80Columns) {
    const Shown shown;
    const auto lines = lines_of(frame_text(shown.sample, shown.rates, {.view = View::Ports}, {80, 8, false}));
    EXPECT_EQ(lines, (std::vector<std::string>{
                         "edge-1 up 11s  table 1.5%  ports 2  interval 1.0 s",
                         "in 1.28k p/s 988kbit/s out 100k p/s 2.00Gbit/s drops 3.2/s open 12",
                         "PORT             RX-P/Sv  TX-P/S  RX-BIT  TX-BIT  MISSED   OFF/S  HOST/S LINK   ",
                         "pen0               1.23k       5    988k       0       0       0       2 up",
                         "pen1                  50    100k       1   2.00G       0       0       0 down",
                         "",
                         "",
                         "s services b backends w workers p ports d drops c clients <> sort r rev q quit",
                     }));
}

TEST(TopScreen, NoLineIsWiderThanTheTerminalNorTheFrameHigher) {
    Shown shown;
    for (const ViewSpec& view : all_views()) {
        shown.sample.view = view.view;
        shown.rates.rows.assign(
            60, RatedRow{std::string(200, 'x'), std::vector<double>(view.columns.size(), 1e15),
                         std::string(300, 'y')});
        for (const size_t width : {20U, 40U, 80U, 200U}) {
            for (const size_t height : {1U, 3U, 5U, 24U}) {
                const auto lines = lines_of(
                    frame_text(shown.sample, shown.rates, {.view = view.view}, {width, height, false}));
                EXPECT_LE(lines.size(), std::max<size_t>(height, 4)) << view.name;
                for (const std::string& line : lines) {
                    EXPECT_LE(line.size(), width) << view.name;
                }
            }
        }
    }
}

TEST(TopScreen, EscapeSequencesOnlyIfColoured) {
    const Shown shown;
    EXPECT_EQ(frame_text(shown.sample, shown.rates, {.view = View::Ports}, {80, 8, false}).find('\033'),
              std::string::npos);
    EXPECT_NE(frame_text(shown.sample, shown.rates, {.view = View::Ports}, {80, 8, true}).find("\033[7mPORT"),
              std::string::npos);
}

TEST(TopScreen, KeysSelectViewColumnOrderAndRows) {
    Selection selection;
    press(selection, "p");
    EXPECT_EQ(selection, (Selection{.view = View::Ports}));
    press(selection, ">\033[C");
    EXPECT_EQ(selection.column, 2U);
    press(selection, "<r");
    EXPECT_EQ(selection, (Selection{.view = View::Ports, .column = 1, .ascending = true}));
    press(selection, "\033[B\033[6~\033[A");
    EXPECT_EQ(selection.first_row, 10U);
    press(selection, "\033[5~\033[A");
    EXPECT_EQ(selection.first_row, 0U);
    press(selection, "<<");
    EXPECT_EQ(selection.column, spec_of(View::Ports).columns.size() - 1) << "from the first to the last";
    press(selection, "d");
    EXPECT_EQ(selection, (Selection{.view = View::Drops})) << "another view has other columns";
    press(selection, "xyz\033\033[\033[99");
    EXPECT_EQ(selection, (Selection{.view = View::Drops})) << "unknown keys";
    press(selection, "q");
    EXPECT_TRUE(selection.quits);
}

TEST(TopScreen, RowsAreSortedByTheSelectedColumn) {
    const Shown shown;
    const auto first = [&](size_t column, bool ascending) {
        const Selection selection{.view = View::Ports, .column = column, .ascending = ascending};
        return lines_of(frame_text(shown.sample, shown.rates, selection, {80, 0, false}))[3].substr(0, 4);
    };
    EXPECT_EQ(first(0, false), "pen0");
    EXPECT_EQ(first(1, false), "pen1");
    EXPECT_EQ(first(1, true), "pen0");
    EXPECT_EQ(first(4, false), "pen0") << "equal values by name";
}

TEST(TopScreen, ScrollingStopsAtTheLastRows) {
    const Shown shown;
    const auto lines = lines_of(
        frame_text(shown.sample, shown.rates, {.view = View::Ports, .first_row = 99}, {80, 5, false}));
    EXPECT_EQ(lines[3].substr(0, 4), "pen1");
}

TEST(TopScreen, ARestartAndAMessageAreShown) {
    Shown shown;
    shown.rates.restarted = true;
    const std::string text =
        frame_text(shown.sample, shown.rates, {.view = View::Ports}, {80, 8, false}, "gone");
    EXPECT_NE(text.find("restarted"), std::string::npos);
    EXPECT_EQ(lines_of(text)[1], "gone");
}

TEST(TopScreen, JsonHasTheNumbersByTheirKeys) {
    const Shown shown;
    const YAML::Node all =
        YAML::Load(rates_json(shown.sample, shown.rates, {.view = View::Ports, .column = 1}));
    EXPECT_EQ(all["view"].as<std::string>(), "ports");
    EXPECT_EQ(all["gateway"].as<std::string>(), "edge-1");
    EXPECT_DOUBLE_EQ(all["interval_seconds"].as<double>(), 1.0);
    EXPECT_DOUBLE_EQ(all["totals"]["rx_packets_per_second"].as<double>(), 1284);
    EXPECT_EQ(all["rows"][0]["name"].as<std::string>(), "pen1");
    EXPECT_DOUBLE_EQ(all["rows"][0]["tx_packets_per_second"].as<double>(), 99'999);
    EXPECT_EQ(all["rows"][1]["remark"].as<std::string>(), "up");
}

TEST(TopScreen, ScaledNumbers) {
    const std::pair<double, const char*> kCases[] = {
        {0, "0"},          {1, "1"},           {3.25, "3.2"},   {9.97, "10"},
        {950.4, "950"},    {999.6, "1.00k"},   {1234, "1.23k"}, {12'345, "12.3k"},
        {123'456, "123k"}, {999'999, "1.00M"}, {2e9, "2.00G"},  {4.5e13, "45.0T"}};
    for (const auto& [value, text] : kCases) {
        EXPECT_EQ(scaled(value), text) << value;
    }
}

TEST(TopScreen, ColumnsAreFoundByHeaderAndKey) {
    const ViewSpec& ports = spec_of(View::Ports);
    EXPECT_EQ(find_column(ports, "tx-p/s"), 1U);
    EXPECT_EQ(find_column(ports, "rx_missed_per_second"), 4U);
    EXPECT_FALSE(find_column(ports, "BUSY%"));
}

TEST(TopCommand, WrongViewsAndColumnsAreRefusedByName) {
    const auto refused = [](const std::vector<std::string>& words) {
        const auto read = read_command_line(words);
        const auto& invocation = std::get<Invocation>(read.value());
        const auto code = invocation.command->perform(nullptr, invocation.request);
        return code ? std::string() : code.error().what;
    };
    EXPECT_EQ(refused({"top", "--view", "pods"}),
              "--view: \"pods\" must be services, backends, workers, ports, drops or clients");
    EXPECT_EQ(refused({"top", "--view", "drops", "--sort", "x"}),
              "--sort: \"x\" must be a column of the view drops: DROPS/S, TOTAL");
}

}  // namespace screen_test
}  // namespace penstock::cli::top
