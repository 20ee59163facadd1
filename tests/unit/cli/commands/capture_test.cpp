// SPDX-License-Identifier: Apache-2.0
// penstockctl capture, from the command line to the request and the file. tests/e2e/capture_cases.py runs it
// at a gateway.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "control/cli/exit_code.hpp"
#include "control/cli/options.hpp"
#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli {
namespace capture_test {

using Words = std::vector<std::string>;

class CaptureCommand : public testing::Test {
 protected:
    CaptureCommand() {
        std::string name = testing::TempDir() + "capture-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        v1::CaptureChunk chunk;
        chunk.set_pcapng("one,");
        gateway_.chunks_.push_back(chunk);
        chunk.set_pcapng("two");
        chunk.set_records(2);
        chunk.set_lost(1);
        chunk.set_ended("the time limit is reached");
        gateway_.chunks_.push_back(chunk);
    }
    ~CaptureCommand() override { std::filesystem::remove_all(folder_); }

    Result<int> run(Words words) {
        words.insert(words.begin(), "capture");
        PENSTOCK_TRY(const auto read, read_command_line(words));
        const auto& invocation = std::get<Invocation>(read);
        return invocation.command->perform(&gateway_, invocation.request);
    }
    Result<int> run_to_file(Words words) {
        words.insert(words.end(), {"-w", file()});
        return run(words);
    }
    [[nodiscard]] std::string file() const { return folder_ + "/out.pcapng"; }
    [[nodiscard]] std::string content() const {
        std::ifstream stream(file());
        std::stringstream text;
        text << stream.rdbuf();
        return text.str();
    }

    std::string folder_;
    test::FakeGateway gateway_;
};

TEST_F(CaptureCommand, WritesTheParts_ReadableByTheUserOnly) {
    EXPECT_EQ(run_to_file({}).value(), 0);
    EXPECT_EQ(content(), "one,two");
    struct stat facts{};
    ASSERT_EQ(::stat(file().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    const v1::CaptureRequest& request = gateway_.capture_request;
    EXPECT_EQ(request.filter_size(), 0);
    EXPECT_EQ(request.seconds(), 60u);
    EXPECT_EQ(request.snap_bytes(), 128u);
    EXPECT_EQ(request.records_max(), 0u);
    EXPECT_EQ(request.form(), v1::CaptureRequest::FORM_RECEIVED);
}

TEST_F(CaptureCommand, SendsTheSelection) {
    EXPECT_EQ(run_to_file({"tcp", "port", "80", "--service", "shop/web", "--client", "192.0.2.1", "--point",
                           "rx,drop", "-c", "7", "--seconds", "5", "--snap", "256", "--match", "either"})
                  .value(),
              0);
    const v1::CaptureRequest& request = gateway_.capture_request;
    EXPECT_GT(request.filter_size(), 5);
    EXPECT_EQ(request.filter_text(), "tcp port 80");
    EXPECT_EQ(request.namespace_() + "/" + request.name(), "shop/web");
    EXPECT_EQ(request.client(), "192.0.2.1");
    ASSERT_EQ(request.points_size(), 2);
    EXPECT_EQ(request.points(0), v1::CaptureRequest::POINT_RX);
    EXPECT_EQ(request.points(1), v1::CaptureRequest::POINT_DROP);
    EXPECT_EQ(request.records_max(), 7u);
    EXPECT_EQ(request.seconds(), 5u);
    EXPECT_EQ(request.snap_bytes(), 256u);
    EXPECT_EQ(request.form(), v1::CaptureRequest::FORM_EITHER);

    gateway_.add_service("tools", "web");
    EXPECT_EQ(run_to_file({"--service", "web"}).value(), 0);
    EXPECT_EQ(gateway_.capture_request.namespace_(), "tools");
    EXPECT_EQ(run_to_file({"--service", "web", "-n", "shop"}).value(), 0);
    EXPECT_EQ(gateway_.capture_request.namespace_(), "shop");
}

TEST_F(CaptureCommand, AWrongRequest_LeavesTheFileAsItIs) {
    std::ofstream(file()) << "former";
    gateway_.add_service("tools", "web");
    gateway_.add_service("shop", "web");
    const struct {
        Words words;
        std::string what;
    } rows[] = {
        {{"tcp", "and", "and"}, "filter, column 9: "},
        {{"--service", "shop/"}, "--service: \"shop/\" must be NAME or NAMESPACE/NAME"},
        {{"--service", "shop/web", "-n", "tools"}, "service shop/web: contradicts --namespace tools"},
        {{"--service", "web"},
         "service web: several namespaces have this name; pass one of shop/web, tools/web"},
        {{"-n", "shop"}, "--namespace shop: capture selects a Service: pass --service NAME too"},
        {{"--client", "192.0.2.1:80"},
         "--client: capture takes an address; put the port into the filter: port 80"},
        {{"--point", "rx,ingress"}, "--point: \"ingress\""},
        {{"--seconds", "3601"}, "--seconds: \"3601\""},
    };
    for (const auto& row : rows) {
        const auto failed = run_to_file(row.words);
        ASSERT_FALSE(failed.has_value()) << row.what;
        EXPECT_EQ(exit_code(failed.error()), kExitUsage);
        EXPECT_TRUE(failed.error().what.starts_with(row.what)) << failed.error().what;
    }
    gateway_.chunks_.clear();
    gateway_.error = Error{Errc::AlreadyExists, "another capture is running"};
    const auto refused = run_to_file({});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(exit_code(refused.error()), kExitRefused);
    EXPECT_EQ(content(), "former");
}

TEST_F(CaptureCommand, AFileThatCannotBeWritten_IsNamed) {
    const auto failed = run({"--write", folder_ + "/absent/out.pcapng"});
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().what,
              "cannot open " + folder_ + "/absent/out.pcapng: No such file or directory");
}

// -w is --watch for all other commands.
TEST_F(CaptureCommand, ShortWriteIsForCaptureOnly) {
    const auto watched = read_command_line({"get", "services", "-w"});
    ASSERT_TRUE(watched.has_value());
    EXPECT_TRUE(std::get<Invocation>(*watched).request.watch);
    const auto behind_options = read_command_line({"--timeout", "3", "capture", "-w", "x"});
    ASSERT_TRUE(behind_options.has_value()) << behind_options.error().what;
    EXPECT_EQ(std::get<Invocation>(*behind_options).request.capture_file, "x");
    EXPECT_TRUE(read_command_line({"get", "services", "capture", "-w"}).has_value());
}

}  // namespace capture_test
}  // namespace penstock::cli
