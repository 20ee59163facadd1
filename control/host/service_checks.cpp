// SPDX-License-Identifier: Apache-2.0
// Checks of what penstockd needs as a service: clock, certificates, descriptors, TCP ports.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "control/host/subject.hpp"
#include "control/host/systemd_unit.hpp"
#include "control/tls/material.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

using std::chrono::days;

// As the alerts of scripts/monitor.
constexpr days kExpiryWarning{14};
constexpr days kExpiryCritical{3};

// More than all NodePorts with health checks on a dozen addresses take
// (control/gateway/program/descriptors.hpp).
constexpr uint64_t kDescriptors = 65'536;

void check_expiry(const std::string& file, const std::string& subject,
                  std::chrono::system_clock::time_point expires, std::chrono::system_clock::time_point now,
                  Check& check) {
    const auto left = std::chrono::floor<days>(expires - now);
    const std::string name = subject.empty() ? "the CA certificate" : subject;
    if (expires <= now) {
        check.fault(file, name + " has expired");
    } else if (left < kExpiryCritical) {
        check.fault(file, name + " expires in " + std::to_string(left.count()) + " days");
    } else if (left < kExpiryWarning) {
        check.warning(file, name + " expires in " + std::to_string(left.count()) + " days");
    } else {
        check.ok(file, name + " expires in " + std::to_string(left.count()) + " days");
        return;
    }
    check.mend("openssl x509 -noout -subject -enddate -in " + file);
}

// The hard limit in "Max open files            1024                 524288               files"; 0: unknown.
uint64_t hard_limit(std::string_view limits) {
    constexpr std::string_view kRow = "Max open files";
    for (const std::string_view line : split(limits, '\n')) {
        if (!line.starts_with(kRow)) {
            continue;
        }
        std::vector<std::string_view> words;
        for (const std::string_view word : split(line.substr(kRow.size()), ' ')) {
            if (!word.empty()) {
                words.push_back(word);
            }
        }
        if (words.size() < 2) {
            return 0;
        }
        return words[1] == "unlimited" ? UINT64_MAX : whole_number<uint64_t>(words[1]).value_or(0);
    }
    return 0;
}

struct FileLimit {
    std::string object;   // whose limit it is
    std::string file;     // that has it
    uint64_t limit = 0;   // 0: unknown
    std::string command;  // that raises it
};

FileLimit limit_of_process(const Root& root, const std::string& pid, std::string object,
                           std::string command) {
    std::string file = "/proc/" + pid + "/limits";
    const auto text = root.text(file);
    return {std::move(object), std::move(file), text ? hard_limit(*text) : 0, std::move(command)};
}

// "65536", "1024:65536" (soft and hard limit), "infinity".
uint64_t limit_of_setting(std::string_view value) {
    const std::string_view hard = value.substr(value.find(':') + 1);
    return hard == "infinity" ? UINT64_MAX : whole_number<uint64_t>(hard).value_or(0);
}

// Of the gateway that is meant: the process that listens on its socket, else the unit that starts it with
// this INI file, else another penstockd of this network namespace, else a program started here.
FileLimit file_limit_of(const Subject& subject) {
    constexpr std::string_view kUnit = "penstock-gateway.service";
    const std::string wanted = std::to_string(kDescriptors);
    const auto of_penstockd = [&] {
        const std::string& pid = subject.penstockd->pid;
        return limit_of_process(subject.root(), pid, "penstockd (process " + pid + ")",
                                "prlimit --nofile=:" + wanted + " --pid " + pid);
    };
    if (subject.has_socket) {
        return of_penstockd();
    }
    const auto start = unit_setting(subject.root(), kUnit, "ExecStart");
    const bool is_meant = subject.config.empty() || (start && start->value.contains(subject.config));
    if (const auto set = unit_setting(subject.root(), kUnit, "LimitNOFILE"); set && is_meant) {
        const std::string folder = "/etc/systemd/system/" + std::string(kUnit) + ".d";
        return {std::string(kUnit), set->file, limit_of_setting(set->value),
                "mkdir -p " + folder + " && printf '[Service]\\nLimitNOFILE=" + wanted + "\\n' >" + folder +
                    "/limits.conf && systemctl daemon-reload"};
    }
    return subject.penstockd
               ? of_penstockd()
               : limit_of_process(subject.root(), "self", "a program started here", "ulimit -n " + wanted);
}

// Whether a socket at `taken` prevents listening at `wanted`. Unspecified addresses overlap with all; "::"
// usually includes IPv4.
bool overlaps(const IpAddr& taken, const std::optional<IpAddr>& wanted) {
    return !wanted || taken == *wanted || taken.is_unspecified() || wanted->is_unspecified();
}

}  // namespace

void check_clock(const Subject& subject, Findings& findings) {
    Check check(findings, "clock");
    const auto synchronised = subject.machine.is_clock_synchronised();
    if (!synchronised) {
        check.unknown("", "the state of the clock (adjtimex)");
    } else if (*synchronised) {
        check.ok("", "synchronised");
    } else {
        check.warning("", "not synchronised: certificates and the times of logs depend on it")
            .mend("apt-get install chrony && systemctl enable --now chrony");
    }
}

void check_certificates(const Subject& subject, Findings& findings) {
    Check check(findings, "certificates");
    const Needs& needs = subject.needs;
    if (needs.tls_cert.empty()) {
        check.ok("", "no TLS files are configured");
        return;
    }
    const auto place = [&](const std::string& file) {
        return file.empty() ? file : subject.root().at(file).string();
    };
    const auto material =
        tls::read_material({place(needs.tls_cert), place(needs.tls_key), place(needs.tls_client_ca)},
                           {.authority = "--tls-client-ca"});
    if (!material) {
        check.fault(needs.tls_cert, material.error().what)
            .mend("openssl x509 -noout -text -in " + needs.tls_cert);
        return;
    }
    const auto now = subject.machine.now();
    if (material->valid_from > now) {
        check.fault(needs.tls_cert, material->subject + " is not valid yet: is the clock right?")
            .mend("date");
    } else {
        check_expiry(needs.tls_cert, material->subject, material->expires, now, check);
    }
    check_expiry(needs.tls_client_ca, "", material->authority_expires, now, check);
}

void check_file_limit(const Subject& subject, Findings& findings) {
    Check check(findings, "file-limit");
    const FileLimit found = file_limit_of(subject);
    if (found.limit == 0) {
        check.unknown(found.object, found.file);
    } else if (found.limit >= kDescriptors) {
        check.ok(found.object,
                 "may open " + (found.limit == UINT64_MAX ? "any number of" : std::to_string(found.limit)) +
                     " files (" + found.file + ")");
    } else {
        check.warning(found.object, "may open " + std::to_string(found.limit) + " files (" + found.file +
                                        "), fewer than " + std::to_string(kDescriptors) +
                                        ": many health check ports would exhaust them");
        check.mend(found.command);
    }
}

void check_listeners(const Subject& subject, Findings& findings) {
    Check check(findings, "ports");
    const auto sockets = listening_sockets(subject.root());
    if (!sockets) {
        check.unknown("", "/proc/self/net/tcp");
        return;
    }
    for (const Needs::Listener& listener : subject.needs.listeners) {
        const std::string object = listener.option + " " + listener.text;
        const auto taken = std::ranges::find_if(*sockets, [&](const SocketRow& row) {
            return row.port == listener.port && overlaps(row.address, listener.address);
        });
        if (taken == sockets->end()) {
            check.ok(object, "free");
            continue;
        }
        const auto owner = owner_of_socket(subject.root(), taken->inode);
        if (owner && owner->name == "penstockd") {
            check.ok(object, "in use by the running penstockd");
        } else {
            check
                .fault(object, "in use by " + (owner ? owner->name + " (process " + owner->pid + ")"
                                                     : std::string("another program")))
                .mend("ss -ltnp 'sport = :" + std::to_string(listener.port) + "'");
        }
    }
    if (subject.needs.listeners.empty()) {
        check.ok("", "penstockd listens on no TCP port");
    }
}

}  // namespace penstock::host
