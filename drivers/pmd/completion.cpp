// SPDX-License-Identifier: Apache-2.0
#include "drivers/pmd/completion.hpp"

#include "dataplane/base/text.hpp"

namespace penstock::drivers {

Result<CompletionResult> complete_device(DeviceString& device, const CompletionFacts& facts) {
    if (facts.mac && (device.driver == "net_memif" || device.driver == "net_tap")) {
        device.complete("mac", facts.mac->to_string());
    }
    if (device.driver == "net_af_packet") {
        return complete_af_packet(device, facts);
    }
    if (device.driver == "net_af_xdp") {
        return complete_af_xdp(device, facts);
    }
    if (device.driver == "net_memif") {
        return complete_memif(device, facts);
    }
    return CompletionResult{frame_bytes(facts.mtu)};
}

Result<uint32_t> number_argument(const DeviceString& device, const char* key, uint32_t otherwise) {
    const std::string* text = device.argument(key);
    if (text == nullptr) {
        return otherwise;
    }
    const auto value = whole_number<uint32_t>(*text);
    if (!value || *value == 0) {
        return fail(Errc::InvalidArgument,
                    device.name + ": " + key + "=" + *text + " is not a number greater than 0");
    }
    return *value;
}

}  // namespace penstock::drivers
