// SPDX-License-Identifier: Apache-2.0
// Any bytes as an INI file, a list of CPUs, a driver library, and the configuration of a routing daemon.
#include <algorithm>
#include <string>
#include <string_view>

#include "control/host/core_plan.hpp"
#include "control/host/cpu_list.hpp"
#include "control/host/needs.hpp"
#include "control/host/pmd_library.hpp"
#include "control/host/routing_daemon.hpp"
#include "dataplane/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock;
    const std::string_view text(reinterpret_cast<const char*>(data), size);

    if (const auto cpus = host::parse_cpu_list(text)) {
        PENSTOCK_CHECK(std::ranges::is_sorted(*cpus));
        PENSTOCK_CHECK(cpus->empty() || cpus->back() <= host::kCpuMax);
        PENSTOCK_CHECK(host::parse_cpu_list(host::cpu_list_text(*cpus)) == cpus);
    }
    for (const host::PmdInfo& info : host::pmd_infos(text)) {
        PENSTOCK_CHECK(!info.name.empty() && text.find(info.name) != std::string_view::npos);
    }
    const auto bird = host::parse_bird(text);
    PENSTOCK_CHECK(!bird.imports || bird.learns);
    PENSTOCK_CHECK(!bird.learns || bird.has_kernel);
    const auto frr = host::parse_frr(text);
    PENSTOCK_CHECK(!frr.redistributes || text.find("redistribute") != std::string_view::npos);

    const auto [needs, mistakes] = host::read_needs(std::string(text));
    PENSTOCK_CHECK(needs.memory_mb > 0);
    for (const auto& listener : needs.listeners) {
        PENSTOCK_CHECK(listener.port != 0);
    }
    for (const std::string& address : needs.pci_devices()) {
        PENSTOCK_CHECK(drivers::is_pci_address(address));
    }
    return 0;
}
