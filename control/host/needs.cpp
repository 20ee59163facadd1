// SPDX-License-Identifier: Apache-2.0
#include "control/host/needs.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "control/options/ini_values.hpp"
#include "control/options/values.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

// "device=0000:03:00.0;twin=pen0;...". Other fields need nothing of the machine.
Result<Needs::Port> port_of(const std::string& text) {
    Needs::Port port;
    std::string device;
    for (const std::string_view field : split(text, ';')) {
        const size_t equals = field.find('=');
        const std::string_view name = trimmed(field.substr(0, equals));
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view() : trimmed(field.substr(equals + 1));
        if (name == "device") {
            device = value;
        } else if (name == "twin") {
            port.twin = value;
        }
    }
    PENSTOCK_TRY(port.device, drivers::DeviceString::parse(device));
    return port;
}

// "127.0.0.1:9105", "[::]:9106", "localhost:9106".
Result<Needs::Listener> listener_of(const std::string& option, const std::string& text) {
    const size_t colon = text.rfind(':');
    const auto port = colon == std::string::npos
                          ? std::nullopt
                          : whole_number<uint16_t>(std::string_view(text).substr(colon + 1));
    if (port.value_or(0) == 0) {
        return options::refuse(text, "must be ADDRESS:PORT");
    }
    std::string_view host = std::string_view(text).substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    const auto address = IpAddr::parse(host);
    return Needs::Listener{option, text, address ? std::optional(*address) : std::nullopt, *port};
}

// Stores the options one by one. The last value of an option that is not repeatable counts.
class NeedsReader {
 public:
    void take(const std::string& name, const std::string& value) {
        const auto known = options_.find(name);
        if (known == options_.end()) {
            return;
        }
        if (const Status stored = known->second(value); !stored) {
            read_.mistakes.push_back("--" + name + ": " + stored.error().what);
        }
    }

    NeedsRead finish() && {
        listen("metrics-listen", metrics_);
        listen("healthz", healthz_ ? *healthz_ : is_node_ ? "0.0.0.0:10256" : "off");
        return std::move(read_);
    }

 private:
    void listen(const std::string& name, const std::string& value) {
        if (value == "off") {
            return;
        }
        if (auto listener = listener_of("--" + name, value)) {
            read_.needs.listeners.push_back(std::move(*listener));
        } else {
            read_.mistakes.push_back("--" + name + ": " + listener.error().what);
        }
    }

    NeedsRead read_;
    std::string metrics_ = "127.0.0.1:9105";
    std::optional<std::string> healthz_;
    bool is_node_ = false;
    bool listens_ = false;  // --listen is given

    Needs& needs_ = read_.needs;
    using Store = std::function<Status(const std::string&)>;
    const std::map<std::string, Store, std::less<>> options_{
        {"port",
         [this](const std::string& value) -> Status {
             PENSTOCK_TRY(auto port, port_of(value));
             needs_.ports.push_back(std::move(port));
             return {};
         }},
        {"workers",
         [this](const std::string& value) -> Status {
             PENSTOCK_TRY(const uint64_t workers, options::parse_number(value, {1, kCpuMax, "workers"}));
             needs_.cores.workers = static_cast<unsigned>(workers);
             return {};
         }},
        {"worker-cores",
         [this](const std::string& value) -> Status {
             PENSTOCK_TRY(needs_.cores.worker_cores, parse_cores(value));
             return {};
         }},
        {"main-core",
         [this](const std::string& value) -> Status {
             PENSTOCK_TRY(const uint64_t cpu, options::parse_number(value, {0, kCpuMax, {}}));
             needs_.cores.main_core = static_cast<unsigned>(cpu);
             return {};
         }},
        {"memory-mb",
         [this](const std::string& value) -> Status {
             PENSTOCK_TRY(needs_.memory_mb, options::parse_number(value, {1, UINT32_MAX, "MB"}));
             return {};
         }},
        {"no-huge",
         [this](const std::string& value) -> Status {
             PENSTOCK_TRY(needs_.no_huge, value.empty() ? Result<bool>(true) : options::parse_on_off(value));
             return {};
         }},
        {"hugepage-size",
         [this](const std::string& value) -> Status {
             PENSTOCK_TRY(needs_.hugepage_size, options::parse_word<drivers::HugepageSize>(
                                                    value, {{"auto", drivers::HugepageSize::Any},
                                                            {"2M", drivers::HugepageSize::Small2M},
                                                            {"1G", drivers::HugepageSize::Large1G}}));
             return {};
         }},
        {"listen",
         [this](const std::string& value) -> Status {
             if (!std::exchange(listens_, true)) {
                 needs_.socket.clear();
             }
             if (!value.starts_with("unix:")) {
                 PENSTOCK_TRY(auto listener, listener_of("--listen", value));
                 needs_.listeners.push_back(std::move(listener));
             } else if (needs_.socket.empty()) {
                 needs_.socket = value.substr(value.find(':') + 1);
             }
             return {};
         }},
        {"metrics-listen", [this](const std::string& value) { return keep(metrics_, value); }},
        {"healthz",
         [this](const std::string& value) -> Status {
             healthz_ = value;
             return {};
         }},
        {"mode",
         [this](const std::string& value) -> Status {
             is_node_ = value == "node";
             return {};
         }},
        {"tls-cert", [this](const std::string& value) { return keep(needs_.tls_cert, value); }},
        {"tls-key", [this](const std::string& value) { return keep(needs_.tls_key, value); }},
        {"tls-client-ca", [this](const std::string& value) { return keep(needs_.tls_client_ca, value); }},
        {"vip-presence",
         [this](const std::string& value) -> Status {
             needs_.announces_routes = value == "routes" || value == "arp";
             return {};
         }},
    };

    static Status keep(std::string& target, const std::string& value) {
        target = value;
        return {};
    }
};

}  // namespace

std::vector<std::string> Needs::pci_devices() const {
    std::vector<std::string> found;
    for (const Port& port : ports) {
        if (port.device.is_pci) {
            found.push_back(port.device.name);
        }
        std::ranges::copy_if(port.device.members(), std::back_inserter(found), drivers::is_pci_address);
    }
    return found;
}

std::vector<std::string> Needs::interfaces() const {
    std::vector<std::string> found;
    for (const Port& port : ports) {
        if (std::string interface = port.device.kernel_interface(); !interface.empty()) {
            found.push_back(std::move(interface));
        }
    }
    return found;
}

NeedsRead read_needs(const std::string& ini) {
    const auto values = options::ini_values(ini);
    if (!values) {
        return {{}, {values.error().what}};
    }
    NeedsReader reader;
    for (const auto& [name, value] : *values) {
        reader.take(name, value);
    }
    return std::move(reader).finish();
}

}  // namespace penstock::host
