// SPDX-License-Identifier: Apache-2.0
#include "control/kube/client/exec_plugin.hpp"

#include <fcntl.h>
#include <signal.h>
#include <simdjson.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "control/kube/client/base64.hpp"
#include "control/kube/client/file_text.hpp"
#include "control/kube/client/tls_material.hpp"
#include "control/log/log.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::kube {
namespace {

// A credential has a few KiB: a chain and a key, or a token. Larger output is not a credential.
constexpr size_t kOutputBytesMax = 1 << 20;
// The beginning of its error output is enough for a log line.
constexpr size_t kErrorBytesMax = 512;

std::string text_at(const simdjson::dom::element& object, const char* name) {
    std::string_view text;
    return object[name].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::unexpected<Error> fail_step(const std::string& what, int cause) {
    return fail(Errc::Unavailable, what + ": " + std::strerror(cause));
}

struct Pipe {
    int read_end = -1;
    int write_end = -1;
};

bool open_pipe(Pipe& pipe) {
    std::array<int, 2> ends;
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return false;
    }
    pipe = {.read_end = ends[0], .write_end = ends[1]};
    return ::fcntl(pipe.read_end, F_SETFL, O_NONBLOCK) == 0;
}

void close_if_open(int descriptor) {
    if (descriptor >= 0) {
        ::close(descriptor);
    }
}

// The environment of this process without the variables set by the stanza and by Penstock, followed by these:
// the first of two equal names would win.
std::vector<std::string> environment_of(const ExecConfig& exec, const std::string& info) {
    std::vector<std::string> added;
    for (const auto& [name, value] : exec.env) {
        added.push_back(name + "=" + value.reveal());
    }
    added.push_back("KUBERNETES_EXEC_INFO=" + info);
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const std::string_view name = text.substr(0, text.find('=') + 1);
        bool is_replaced = false;
        for (const std::string& other : added) {
            is_replaced = is_replaced || other.starts_with(name);
        }
        if (!is_replaced) {
            all.emplace_back(text);
        }
    }
    all.insert(all.end(), added.begin(), added.end());
    return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

// The two parameter blocks of posix_spawn. Descriptors 0, 1 and 2 are set explicitly and all others closed.
// Signals are reset to their defaults, although this process blocks some. The program gets its own process
// group, so that its children can be ended with it.
class SpawnRules {
 public:
    SpawnRules(int output, int errors) {
        ::posix_spawn_file_actions_init(&actions_);
        ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        ::posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
        ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
        ::posix_spawnattr_init(&attributes_);
        sigset_t none;
        sigset_t all;
        ::sigemptyset(&none);
        ::sigfillset(&all);
        ::posix_spawnattr_setsigmask(&attributes_, &none);
        ::posix_spawnattr_setsigdefault(&attributes_, &all);
        ::posix_spawnattr_setpgroup(&attributes_, 0);
        ::posix_spawnattr_setflags(&attributes_,
                                   POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    ~SpawnRules() {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    SpawnRules(const SpawnRules&) = delete;
    SpawnRules& operator=(const SpawnRules&) = delete;
    const posix_spawn_file_actions_t* actions() const { return &actions_; }
    const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

std::string quoted(const std::string& text) {
    return '"' + log::json_escaped(text) + '"';
}

std::string one_line(const std::string& text) {
    std::string line(trimmed(text));
    for (char& c : line) {
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
            c = ' ';
        }
    }
    return line;
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> parse_time(std::string_view text) {
    const std::string copy(text);
    tm parts{};
    const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == nullptr) {
        return std::nullopt;
    }
    if (*rest == '.') {
        do {
            ++rest;  // fractions of a second: not needed here
        } while (*rest >= '0' && *rest <= '9');
    }
    long offset_seconds = 0;
    if (*rest == '+' || *rest == '-') {
        int hours = 0;
        int minutes = 0;
        int used = 0;
        if (std::sscanf(rest + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || used != 5 ||
            rest[6] != '\0') {
            return std::nullopt;
        }
        offset_seconds = (hours * 60L + minutes) * (*rest == '-' ? -60 : 60);
    } else if (std::strcmp(rest, "Z") != 0) {
        return std::nullopt;
    }
    return std::chrono::system_clock::from_time_t(::timegm(&parts) - offset_seconds);
}

Result<ExecCredential> parse_exec_credential(std::string_view json, std::string_view api_version) {
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(json);
    simdjson::dom::element root;
    if (parser.parse(padded).get(root) != simdjson::SUCCESS || !root.is_object()) {
        return fail(Errc::InvalidArgument, "its output is not JSON");
    }
    if (text_at(root, "kind") != "ExecCredential" || text_at(root, "apiVersion") != api_version) {
        return fail(Errc::InvalidArgument,
                    "its output is not an ExecCredential of " + std::string(api_version));
    }
    simdjson::dom::element status;
    if (root["status"].get(status) != simdjson::SUCCESS || !status.is_object()) {
        return fail(Errc::InvalidArgument, "its ExecCredential has no status");
    }
    ExecCredential credential{.token = Secret(std::string(trimmed(text_at(status, "token")))),
                              .certificate = text_at(status, "clientCertificateData"),
                              .key = Secret(text_at(status, "clientKeyData"))};
    if (credential.certificate.empty() != credential.key.is_empty()) {
        return fail(Errc::InvalidArgument,
                    "its ExecCredential needs clientCertificateData and clientKeyData, or neither");
    }
    if (credential.token.is_empty() && credential.certificate.empty()) {
        return fail(Errc::InvalidArgument, "its ExecCredential has neither token nor certificate");
    }
    if (!credential.certificate.empty()) {
        PENSTOCK_TRY_STATUS_IN("its ExecCredential", check_pair(credential.certificate, credential.key));
    }
    if (const std::string expiration = text_at(status, "expirationTimestamp"); !expiration.empty()) {
        credential.expires_at = parse_time(expiration);
        if (!credential.expires_at) {
            return fail(Errc::InvalidArgument,
                        "its ExecCredential's expirationTimestamp is not an RFC 3339 time");
        }
    }
    return credential;
}

std::string exec_info(const ClientConfig& config, const std::string& ca) {
    std::string info = R"({"apiVersion":)" + quoted(config.exec->api_version) +
                       R"(,"kind":"ExecCredential","spec":{"interactive":false)";
    if (config.exec->provide_cluster_info) {
        info += R"(,"cluster":{"server":)" + quoted(config.server);
        if (!config.tls_server_name.empty()) {
            info += R"(,"tls-server-name":)" + quoted(config.tls_server_name);
        }
        if (config.insecure_skip_tls_verify) {
            info += R"(,"insecure-skip-tls-verify":true)";
        }
        if (!ca.empty()) {
            info += R"(,"certificate-authority-data":)" + quoted(base64_encoded(ca));
        }
        if (!config.proxy_url.is_empty()) {
            info += R"(,"proxy-url":)" + quoted(config.proxy_url.reveal());
        }
        info += "}";
    }
    return info + "}}";
}

Result<std::string> find_program(const ExecConfig& exec, const std::string& path_variable) {
    std::vector<std::string> candidates;
    if (exec.command.find('/') != std::string::npos) {
        candidates.push_back(exec.command);
    } else {
        std::stringstream folders(path_variable);
        for (std::string folder; std::getline(folders, folder, ':');) {
            candidates.push_back(folder + "/" + exec.command);
        }
    }
    for (const std::string& candidate : candidates) {
        if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) {
            return candidate;
        }
    }
    const std::string hint = exec.install_hint.empty() ? "" : "; " + one_line(exec.install_hint);
    return fail(Errc::NotFound, "exec plugin " + exec.command + ": program not found" + hint);
}

Result<ExecRun> ExecRun::start(const std::string& program, const ExecConfig& exec, const std::string& info) {
    const std::string name = "exec plugin " + exec.command;
    Pipe output;
    Pipe errors;
    if (!open_pipe(output) || !open_pipe(errors)) {
        const int cause = errno;
        for (const int descriptor : {output.read_end, output.write_end, errors.read_end, errors.write_end}) {
            close_if_open(descriptor);
        }
        return fail_step(name, cause);
    }
    std::vector<std::string> arguments = {exec.command};
    arguments.insert(arguments.end(), exec.args.begin(), exec.args.end());
    std::vector<std::string> environment = environment_of(exec, info);
    const SpawnRules rules(output.write_end, errors.write_end);
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, program.c_str(), rules.actions(), rules.attributes(),
                                     pointers_to(arguments).data(), pointers_to(environment).data());
    ::close(output.write_end);
    ::close(errors.write_end);
    ExecRun run(name, failed == 0 ? pid : 0, output.read_end, errors.read_end);
    if (failed != 0) {
        return fail_step(name, failed);
    }
    return run;
}

ExecRun::ExecRun(std::string name, pid_t pid, int output, int errors)
    : name_(std::move(name)), pid_(pid), output_descriptor_(output), error_descriptor_(errors) {}

ExecRun::ExecRun(ExecRun&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, 0)),
      output_descriptor_(std::exchange(other.output_descriptor_, -1)),
      error_descriptor_(std::exchange(other.error_descriptor_, -1)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

ExecRun::~ExecRun() {
    if (pid_ > 0) {
        ::kill(-pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    close_if_open(output_descriptor_);
    close_if_open(error_descriptor_);
}

// False if the program wrote more than `bytes_max`; the excess is discarded.
bool ExecRun::drain(int descriptor, std::string& text, size_t bytes_max) {
    std::array<char, 4096> part;
    for (ssize_t got = 0; (got = ::read(descriptor, part.data(), part.size())) > 0;) {
        text.append(part.data(), static_cast<size_t>(got));
        if (text.size() > bytes_max) {
            text.resize(bytes_max);
            return false;
        }
    }
    return true;
}

std::optional<Result<std::string>> ExecRun::step() {
    int status = 0;
    // Its exit is checked before its output is read: the last output is then in the pipe.
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    drain(error_descriptor_, errors_, kErrorBytesMax);
    if (!drain(output_descriptor_, output_, kOutputBytesMax)) {
        return fail(Errc::InvalidArgument, name_ + ": its output is too large for a credential");
    }
    if (ended == 0) {
        return std::nullopt;
    }
    // Also kills the children that it left behind; the group exists as long as one of them.
    ::kill(-pid_, SIGKILL);
    pid_ = 0;
    if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return std::move(output_);
    }
    const std::string how = ended > 0 && WIFSIGNALED(status)
                                ? "was killed by signal " + std::to_string(WTERMSIG(status))
                                : "exited with " + std::to_string(WEXITSTATUS(status));
    const std::string words = one_line(errors_);
    return fail(Errc::Unavailable, name_ + ": " + how + (words.empty() ? "" : ": " + words));
}

}  // namespace penstock::kube
