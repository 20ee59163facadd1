// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/cluster_facts.hpp"

#include "control/semantics/notices.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {

std::vector<Prefix> pod_cidrs_of(const std::string& node_name, const kube::Node& node,
                                 std::vector<ObjectNotice>& notices) {
    std::vector<Prefix> cidrs;
    for (const std::string& text : node.pod_cidrs) {
        if (const auto cidr = Prefix::parse(text)) {
            cidrs.push_back(*cidr);
        } else {
            notices.push_back(
                {.kind = "Node",
                 .object = {.namespace_name = "", .name = node_name},
                 .notice = {.level = model::Notice::Level::Warning,
                            .reason = std::string(reason::kInvalidPodCidr),
                            .message = "spec.podCIDRs: " + quoted(text) + " is not a CIDR and is ignored"}});
        }
    }
    return cidrs;
}

}  // namespace penstock::semantics
