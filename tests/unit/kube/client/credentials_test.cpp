// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/credentials.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "dataplane/base/text.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/scratch_folder.hpp"

namespace penstock::kube {
namespace credentials_test {

using namespace std::chrono_literals;
using test::CertificateAuthority;
using test::LogCapture;
using test::ScratchFolder;

const std::string kToken = "hunter2-is-a-secret";

// Test clock; wall and steady time move together.
class CredentialsTest : public testing::Test {
 protected:
    void pass(std::chrono::milliseconds time) {
        now_.steady += time;
        now_.wall += time;
    }
    Credentials open(const ClientConfig& config) {
        auto credentials = Credentials::open(config, times_, now_);
        if (!credentials) {
            ADD_FAILURE() << credentials.error().what;
            std::abort();
        }
        return std::move(*credentials);
    }
    std::string refusal(const ClientConfig& config) {
        const auto credentials = Credentials::open(config, times_, now_);
        return credentials ? "" : credentials.error().what;
    }

    ScratchFolder folder_;
    CredentialTimes times_;
    Instant now_{std::chrono::steady_clock::time_point(1h),
                 std::chrono::system_clock::time_point(1'000'000h)};
    LogCapture log_{"kube"};
};

ClientConfig with_token_file(const std::filesystem::path& file) {
    ClientConfig config;
    config.origin = "test";
    config.token_file = file;
    return config;
}

TEST_F(CredentialsTest, TokenFileBeatsTheInlineOne_AUTH002) {
    ClientConfig config = with_token_file(folder_.write("token", kToken + "\n"));
    config.token = Secret("inline-token");
    EXPECT_EQ(open(config).token().reveal(), kToken);
}

TEST_F(CredentialsTest, ReplacedTokenIsTakenAtOnce_AUTH004) {
    Credentials credentials = open(with_token_file(folder_.write("token", "first")));
    folder_.write("token", "second");
    EXPECT_EQ(credentials.refresh(now_), Credentials::State::Ready);
    EXPECT_EQ(credentials.token().reveal(), "second");
}

// A change that no stamp shows (some network file systems keep it) is detected by reading: by age, and after
// a 401.
TEST_F(CredentialsTest, TokenIsReadAgainByAgeAndWhenRejected_AUTH004) {
    // A pseudo file: its contents change with every read, its stamp never.
    Credentials credentials = open(with_token_file("/proc/sys/kernel/random/uuid"));
    const std::string first = credentials.token().reveal();
    pass(59999ms);
    credentials.refresh(now_);
    EXPECT_EQ(credentials.token().reveal(), first);
    pass(1ms);
    credentials.refresh(now_);
    const std::string second = credentials.token().reveal();
    EXPECT_NE(second, first);
    credentials.refresh(now_);
    EXPECT_EQ(credentials.token().reveal(), second);
    credentials.rejected();
    credentials.refresh(now_);
    EXPECT_NE(credentials.token().reveal(), second);
}

TEST_F(CredentialsTest, EmptyOrVanishedTokenFileKeepsTheOldOneAndSaysSoOnce_AUTH004) {
    const auto file = folder_.write("token", kToken);
    Credentials credentials = open(with_token_file(file));
    folder_.write("token", " \n");
    for (int i = 0; i < 5; ++i) {
        pass(61s);
        EXPECT_EQ(credentials.refresh(now_), Credentials::State::Ready);
        EXPECT_EQ(credentials.token().reveal(), kToken);
    }
    EXPECT_EQ(log_.count("token file " + file.string() + ": is empty; the previous token stays in use"), 1U);
    std::filesystem::remove(file);
    pass(61s);
    credentials.refresh(now_);
    credentials.refresh(now_);
    EXPECT_EQ(credentials.token().reveal(), kToken);
    EXPECT_EQ(log_.count("No such file or directory; the previous token stays in use"), 1U);
    folder_.write("token", "third");
    credentials.refresh(now_);
    EXPECT_EQ(credentials.token().reveal(), "third");
    EXPECT_EQ(log_.count("token is valid again"), 1U);
    EXPECT_EQ(log_.count(kToken), 0U);  // AUTH-009
}

TEST_F(CredentialsTest, TokenFileMustBeGoodAtTheStart_AUTH002) {
    const auto file = folder_.path() / "token";
    EXPECT_EQ(refusal(with_token_file(file)),
              "test: token file " + file.string() + ": No such file or directory");
    folder_.write("token", "");
    EXPECT_EQ(refusal(with_token_file(file)), "test: token file " + file.string() + ": is empty");
    folder_.write("token", kToken + "\r\nImpersonate-User: admin");
    EXPECT_EQ(refusal(with_token_file(file)),
              "test: token file " + file.string() + ": contains characters that are not allowed in a token");
    ClientConfig config;
    config.origin = "test";
    config.token = Secret(kToken + "\n" + kToken);
    EXPECT_EQ(refusal(config), "test: token: contains characters that are not allowed in a token");
}

TEST_F(CredentialsTest, CertificateAndKeyOfBothKindsFit_AUTH002) {
    const CertificateAuthority authority;
    for (const bool is_rsa : {false, true}) {
        const auto issued = authority.issue({.is_rsa = is_rsa});
        ClientConfig config;
        config.ca.data = Secret(authority.pem() + authority.pem());
        config.client_certificate.data = Secret(issued.certificate + authority.pem());
        config.client_key.file = folder_.write("key", issued.key);
        const Credentials credentials = open(config);
        EXPECT_EQ(credentials.tls()->key.reveal(), issued.key);
        EXPECT_EQ(credentials.tls()->certificate, issued.certificate + authority.pem());
    }
}

TEST_F(CredentialsTest, WhatDoesNotFitIsAStartUpError_AUTH002) {
    const CertificateAuthority authority;
    const auto one = authority.issue({});
    const auto other = authority.issue({});
    ClientConfig good;
    good.origin = "test";
    good.ca.data = Secret(authority.pem());
    good.client_certificate.data = Secret(one.certificate);
    good.client_key.data = Secret(one.key);
    EXPECT_EQ(refusal(good), "");

    ClientConfig config = good;
    config.client_key.data = Secret(other.key);
    EXPECT_EQ(refusal(config), "test: client key: does not belong to the client certificate");
    config.client_key.data = Secret("no key");
    EXPECT_EQ(refusal(config), "test: client key: holds no private key");
    config.client_key.data = Secret(test::encrypted_key(one.key, "password"));
    EXPECT_EQ(refusal(config), "test: client key: is encrypted; it must be stored without a password");
    config = good;
    config.client_certificate.data = Secret(one.key);
    EXPECT_EQ(refusal(config), "test: client certificate: holds no certificate");
    config = good;
    config.ca.data = Secret("nothing");
    EXPECT_EQ(refusal(config), "test: CA: holds no certificate");
    config.ca.data = Secret(authority.pem() + authority.pem().substr(0, 200));
    EXPECT_EQ(refusal(config), "test: CA: certificate 2 is damaged");
    config.ca = {.file = folder_.path() / "ca.crt"};
    EXPECT_EQ(refusal(config),
              "test: CA: " + (folder_.path() / "ca.crt").string() + ": No such file or directory");
}

TEST_F(CredentialsTest, RotatedFilesAreTakenWhenTheyFit_AUTH005) {
    const CertificateAuthority authority;
    const CertificateAuthority next_authority;
    const auto one = authority.issue({});
    const auto two = next_authority.issue({});
    ClientConfig config;
    config.ca.file = folder_.write("ca.crt", authority.pem());
    config.client_certificate.file = folder_.write("me.crt", one.certificate);
    config.client_key.file = folder_.write("me.key", one.key);
    Credentials credentials = open(config);
    const auto before = credentials.tls();
    credentials.refresh(now_);
    EXPECT_EQ(credentials.tls(), before);  // connections stay shared

    folder_.write("me.crt", two.certificate);
    credentials.refresh(now_);
    EXPECT_EQ(credentials.tls(), before);
    EXPECT_EQ(log_.count("does not belong to the client certificate; the previous"), 1U);
    folder_.write("me.key", two.key);
    folder_.write("ca.crt", next_authority.pem());
    credentials.refresh(now_);
    EXPECT_EQ(credentials.tls()->certificate, two.certificate);
    EXPECT_EQ(credentials.tls()->key.reveal(), two.key);
    EXPECT_EQ(credentials.tls()->ca, next_authority.pem());
    EXPECT_EQ(before->certificate, one.certificate);  // existing connections keep their material
}

TEST_F(CredentialsTest, WordsOfOthersLoseTheirSecrets_AUTH009) {
    ClientConfig config;
    config.token = Secret(kToken);
    const Credentials credentials = open(config);
    EXPECT_EQ(credentials.without_secrets("Bearer " + kToken + "," + kToken), "Bearer ***,***");
}

class ExecTest : public CredentialsTest {
 protected:
    // A plugin that runs `script`.
    ClientConfig plugin(const std::string& script) {
        ClientConfig config;
        config.origin = "test";
        config.server = "https://api:6443";
        const auto file = folder_.write("login", "#!/bin/sh\n" + script);
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        config.exec = ExecConfig{.api_version = "client.authentication.k8s.io/v1", .command = file.string()};
        return config;
    }
    // Real time passes for the plugin; the test clock stands still.
    Credentials::State wait(Credentials& credentials) {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (std::chrono::steady_clock::now() < deadline) {
            if (const auto state = credentials.refresh(now_); state != Credentials::State::Pending) {
                return state;
            }
            ::usleep(2000);
        }
        return Credentials::State::Pending;
    }
    // Whether the process ends within ten seconds; an uncollected zombie counts as ended.
    static bool comes_to_an_end(const std::string& pid) {
        const auto deadline = std::chrono::steady_clock::now() + 10s;
        do {
            const auto stat = read_file_text("/proc/" + pid + "/stat");
            if (!stat || stat->find(") Z") != std::string::npos) {
                return true;
            }
            ::usleep(2000);
        } while (std::chrono::steady_clock::now() < deadline);
        return false;
    }
    static std::string credential(const std::string& status) {
        return R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{)" +
               status + "}}";
    }
    size_t runs() const {
        const auto text = read_file_text(folder_.path() / "runs");
        return text ? static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) : 0;
    }
    std::string counting(const std::string& status) const {
        return "echo run >>" + (folder_.path() / "runs").string() + "\necho '" + credential(status) + "'\n";
    }
};

TEST_F(ExecTest, TokenServesUntilItExpiresOrIsRejected_AUTH007) {
    // 1'000'000 hours after the epoch is 2084-01-29T16:00:00Z.
    Credentials credentials = open(
        plugin(counting(R"("token":")" + kToken + R"(","expirationTimestamp":"2084-01-29T18:00:00+01:00")")));
    EXPECT_EQ(wait(credentials), Credentials::State::Ready) << credentials.failure();
    EXPECT_EQ(credentials.token().reveal(), kToken);
    pass(59min);
    EXPECT_EQ(credentials.refresh(now_), Credentials::State::Ready);
    EXPECT_EQ(runs(), 1U);
    credentials.rejected();
    EXPECT_EQ(wait(credentials), Credentials::State::Ready);
    EXPECT_EQ(runs(), 2U);
    pass(1min);
    EXPECT_EQ(wait(credentials), Credentials::State::Failed);
    EXPECT_EQ(runs(), 3U);
    EXPECT_NE(credentials.failure().find("returned an expired credential"), std::string::npos);
}

TEST_F(ExecTest, CertificateReplacesThatOfTheFiles_AUTH007) {
    const CertificateAuthority authority;
    const auto issued = authority.issue({});
    const auto escaped = [](const std::string& pem) { return log::json_escaped(pem); };
    folder_.write("answer", credential("\"clientCertificateData\":\"" + escaped(issued.certificate) +
                                       "\",\"clientKeyData\":\"" + escaped(issued.key) + "\""));
    ClientConfig config = plugin("cat " + (folder_.path() / "answer").string());
    config.ca.data = Secret(authority.pem());
    Credentials credentials = open(config);
    ASSERT_EQ(wait(credentials), Credentials::State::Ready) << credentials.failure();
    EXPECT_EQ(credentials.tls()->certificate, issued.certificate);
    EXPECT_EQ(credentials.tls()->ca, authority.pem());
    EXPECT_TRUE(credentials.token().is_empty());
}

TEST_F(ExecTest, PluginRunsWithoutShellAndIsToldWhatItAskedFor_AUTH007) {
    const auto told = folder_.path() / "told";
    ClientConfig config =
        plugin("{ printf '%s|' \"$@\"; printf '%s|%s' \"$EXTRA\" \"$KUBERNETES_EXEC_INFO\"; } >" +
               told.string() + "\ncat >/dev/null\n" + counting(R"("token":"abcdef")"));
    config.exec->args = {"a b", "$(reboot)", "`x`;"};
    config.exec->env = {{"EXTRA", Secret("value")}};
    config.exec->provide_cluster_info = true;
    config.tls_server_name = "inner";
    Credentials credentials = open(config);
    ASSERT_EQ(wait(credentials), Credentials::State::Ready) << credentials.failure();
    EXPECT_EQ(
        *read_file_text(told),
        "a b|$(reboot)|`x`;|value|"
        R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false,)"
        R"("cluster":{"server":"https://api:6443","tls-server-name":"inner"}}})");
}

TEST_F(ExecTest, PluginThatHangsIsEndedWithItsChildren_AUTH007) {
    const auto pid_file = folder_.path() / "pid";
    Credentials credentials = open(plugin("sleep 600 &\necho $! >" + pid_file.string() + "\nwait\n"));
    EXPECT_EQ(credentials.refresh(now_),
              Credentials::State::Pending);  // at once: nothing waits for the plugin
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    std::string pid;
    while (pid.empty() && std::chrono::steady_clock::now() < deadline) {
        const auto text = read_file_text(pid_file);
        pid = text ? std::string(trimmed(*text)) : "";
        ::usleep(2000);
    }
    ASSERT_FALSE(pid.empty());
    pass(59s);
    EXPECT_EQ(credentials.refresh(now_), Credentials::State::Pending);
    pass(1s);
    EXPECT_EQ(credentials.refresh(now_), Credentials::State::Failed);
    EXPECT_NE(credentials.failure().find("did not exit within 60 s"), std::string::npos);
    EXPECT_TRUE(comes_to_an_end(pid));
}

TEST_F(ExecTest, ChildrenThatAPluginLeavesBehindAreEnded_AUTH007) {
    const auto pid_file = folder_.path() / "pid";
    // The child has separate descriptors: an open pipe would be another reason to wait for it.
    Credentials credentials = open(plugin("sleep 600 >/dev/null 2>&1 &\necho $! >" + pid_file.string() +
                                          "\n" + counting(R"("token":"abcdef")")));
    ASSERT_EQ(wait(credentials), Credentials::State::Ready) << credentials.failure();
    const auto pid = read_file_text(pid_file);
    ASSERT_TRUE(pid);
    EXPECT_TRUE(comes_to_an_end(std::string(trimmed(*pid))));
}

TEST_F(ExecTest, EachFailureIsNamedAndTheNextRequestTriesAgain_AUTH007_AUTH009) {
    struct Case {
        std::string script, expected;
    };
    const Case cases[] = {
        {"echo 'no\nnetwork' >&2; exit 3", ": exited with 3: no network"},
        {"kill -9 $$", ": was killed by signal 9"},
        {"echo " + kToken, ": its output is not JSON"},
        {R"(echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}')",
         ": its output is not an ExecCredential of client.authentication.k8s.io/v1"},
        {R"(echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}')",
         ": its ExecCredential has no status"},
        {"echo '" + credential("") + "'", ": its ExecCredential has neither token nor certificate"},
        {"echo '" + credential(R"("clientKeyData":")" + kToken + "\"") + "'",
         ": its ExecCredential needs clientCertificateData and clientKeyData, or neither"},
        {"echo '" + credential(R"("clientCertificateData":"a","clientKeyData":")" + kToken + "\"") + "'",
         ": its ExecCredential: client certificate: holds no certificate"},
        {"echo '" + credential(R"("token":")" + kToken + R"(","expirationTimestamp":"tomorrow")") + "'",
         ": its ExecCredential's expirationTimestamp is not an RFC 3339 time"},
        {"echo '" + credential(R"("token":")" + kToken + R"(\u0001x")") + "'",
         ": its token: contains characters that are not allowed in a token"},
        {"head -c 2000000 /dev/zero", ": its output is too large for a credential"},
    };
    for (const Case& failing : cases) {
        const ClientConfig config = plugin(failing.script);
        Credentials credentials = open(config);
        EXPECT_EQ(wait(credentials), Credentials::State::Failed) << failing.script;
        EXPECT_EQ(credentials.failure(), "exec plugin " + config.exec->command + failing.expected);
        EXPECT_EQ(credentials.failure().find(kToken), std::string::npos);
        plugin(counting(R"("token":"abcdef")"));
        EXPECT_EQ(wait(credentials), Credentials::State::Ready) << credentials.failure();
    }
}

TEST_F(ExecTest, MissingPluginIsAStartUpErrorWithItsHint_AUTH007) {
    ClientConfig config = plugin("");
    config.exec->command = "penstock-no-such-plugin";
    config.exec->install_hint = "install\nit";
    EXPECT_EQ(refusal(config), "test: exec plugin penstock-no-such-plugin: program not found; install it");
}

TEST(ParseTime, ReadsWhatKubernetesWrites) {
    const auto seconds = [](const char* text) {
        const auto time = parse_time(text);
        return time ? std::optional(
                          std::chrono::duration_cast<std::chrono::seconds>(time->time_since_epoch()).count())
                    : std::nullopt;
    };
    EXPECT_EQ(seconds("1970-01-02T00:00:01Z"), 86401);
    EXPECT_EQ(seconds("1970-01-02T00:00:01.123456Z"), 86401);
    EXPECT_EQ(seconds("1970-01-02T01:30:01+01:30"), 86401);
    EXPECT_EQ(seconds("1970-01-01T23:00:01-01:00"), 86401);
    for (const char* broken :
         {"", "1970-01-02", "1970-01-02T00:00:01", "1970-01-02T00:00:01+1", "1970-01-02T00:00:01Zx", "x"}) {
        EXPECT_EQ(seconds(broken), std::nullopt) << broken;
    }
}

}  // namespace credentials_test
}  // namespace penstock::kube
