// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/host/device_binding.hpp"
#include "control/host/doctor.hpp"

namespace penstock::cli {
namespace {

// Where the packages install it.
constexpr const char* kConfig = "/etc/penstock/penstockd.ini";

size_t number_of(const std::vector<host::Finding>& findings, host::Level level) {
    return static_cast<size_t>(std::ranges::count(findings, level, &host::Finding::level));
}

// "2 faults", "1 warning"
std::string counted(size_t count, const char* noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

Result<int> perform_doctor(Gateway*, const Request& request) {
    const host::Machine machine = host::real_machine();
    const std::string config = !request.arguments.empty()     ? request.arguments.front()
                               : machine.root.exists(kConfig) ? kConfig
                                                              : "";
    const auto findings = host::examine(machine, config);
    std::cout << (request.is_structured() ? structured(findings_json(findings), request.format)
                                          : findings_text(findings))
              << std::flush;
    return exit_code_of(findings);
}

Result<std::string> run_doctor_bind(Gateway*, const Request& request) {
    PENSTOCK_TRY(const std::string address, host::full_pci_address(request.arguments.front()));
    PENSTOCK_TRY(const std::string done, host::bind_device(host::real_machine(), address));
    return done + "\n";
}

Result<std::string> run_doctor_unbind(Gateway*, const Request& request) {
    PENSTOCK_TRY(const std::string address, host::full_pci_address(request.arguments.front()));
    PENSTOCK_TRY(const std::string done, host::unbind_device(host::real_machine(), address));
    return done + "\n";
}

}  // namespace

std::string findings_text(const std::vector<host::Finding>& findings) {
    Table table({{"RESULT"}, {"CHECK"}, {"OBJECT"}, {"DETAIL"}});
    for (const host::Finding& finding : findings) {
        table.add({std::string(to_string(finding.level)), finding.check, finding.object, finding.text});
    }
    std::istringstream rows(table.text());
    std::string text, line;
    std::getline(rows, line);
    text += line + "\n";
    for (const host::Finding& finding : findings) {
        std::getline(rows, line);
        text += line + "\n";
        for (const std::string& command : finding.commands) {
            text += "         " + command + "\n";
        }
    }
    return text + counted(number_of(findings, host::Level::Fault), "fault") + ", " +
           counted(number_of(findings, host::Level::Warning), "warning") + ", " +
           std::to_string(number_of(findings, host::Level::Unknown)) + " unknown, " +
           std::to_string(number_of(findings, host::Level::Ok)) + " ok\n";
}

std::string findings_json(const std::vector<host::Finding>& findings) {
    google::protobuf::Struct all;
    (*all.mutable_fields())["result"].set_string_value(std::string(to_string(host::worst(findings))));
    auto& list = *(*all.mutable_fields())["findings"].mutable_list_value();
    for (const host::Finding& finding : findings) {
        auto& fields = *list.add_values()->mutable_struct_value()->mutable_fields();
        fields["check"].set_string_value(finding.check);
        fields["object"].set_string_value(finding.object);
        fields["result"].set_string_value(std::string(to_string(finding.level)));
        fields["text"].set_string_value(finding.text);
        auto& commands = *fields["commands"].mutable_list_value();
        for (const std::string& command : finding.commands) {
            commands.add_values()->set_string_value(command);
        }
    }
    return json_text(all);
}

int exit_code_of(const std::vector<host::Finding>& findings) {
    switch (host::worst(findings)) {
        case host::Level::Fault:
            return 2;
        case host::Level::Warning:
            return 1;
        default:
            return 0;
    }
}

Command doctor() {
    return {.words = {"doctor"},
            .arguments = "[FILE]",
            .arguments_max = 1,
            .options = {"output"},
            .summary =
                "Check whether this machine is ready for penstockd with the INI file FILE (default: "
                "/etc/penstock/penstockd.ini, if it exists), with the command that mends each finding. Exit "
                "code: 0, "
                "1 with a warning, 2 with a fault",
            .needs_gateway = false,
            .run = nullptr,
            .perform = perform_doctor};
}

Command doctor_bind() {
    return {.words = {"doctor", "bind"},
            .arguments = "PCI-ADDRESS",
            .arguments_min = 1,
            .arguments_max = 1,
            .summary = "Bind a PCI device to vfio-pci for penstockd, and record its former driver",
            .needs_gateway = false,
            .run = run_doctor_bind};
}

Command doctor_unbind() {
    return {.words = {"doctor", "unbind"},
            .arguments = "PCI-ADDRESS",
            .arguments_min = 1,
            .arguments_max = 1,
            .summary = "Return a PCI device to the driver that it had before doctor bind",
            .needs_gateway = false,
            .run = run_doctor_unbind};
}

}  // namespace penstock::cli
