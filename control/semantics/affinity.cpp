// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/affinity.hpp"

#include "control/semantics/text.hpp"

namespace penstock::semantics {

uint32_t affinity_timeout_of(const kube::Service& service, Notices& notices) {
    if (service.session_affinity != "ClientIP") {
        if (service.session_affinity != "None") {
            notices.warn(reason::kUnknownValue, "spec.sessionAffinity " + quoted(service.session_affinity) +
                                                    " is not known; None is used");
        }
        return 0;
    }
    const int64_t asked_s = service.affinity_timeout_s;
    if (asked_s < 1 || asked_s > kAffinityTimeoutMaxSeconds) {
        notices.warn(reason::kInvalidAffinityTimeout,
                     "spec.sessionAffinityConfig.clientIP.timeoutSeconds " + std::to_string(asked_s) +
                         " is not in 1-" + std::to_string(kAffinityTimeoutMaxSeconds) + "; " +
                         std::to_string(kAffinityTimeoutDefaultSeconds) + " is used");
        return kAffinityTimeoutDefaultSeconds;
    }
    return static_cast<uint32_t>(asked_s);
}

}  // namespace penstock::semantics
