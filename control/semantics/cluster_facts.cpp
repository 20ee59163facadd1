#include "control/semantics/cluster_facts.hpp"

#include "control/semantics/notices.hpp"
#include "control/semantics/standing.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {

ClusterFacts gather_cluster_facts(const kube::ObjectSet& objects, std::vector<ObjectNotice>& notices) {
    ClusterFacts facts;
    for (const auto& [name, service] : objects.services) {
        for (const IpAddr& address : cluster_ips_of(service)) {
            facts.cluster_ips.insert(address);
        }
    }
    for (const auto& [name, node] : objects.nodes) {
        for (const std::string& text : node.pod_cidrs) {
            if (const auto cidr = Prefix::parse(text)) {
                facts.pod_cidrs.add(*cidr);
            } else {
                notices.push_back({.kind = "Node",
                                   .object = {.namespace_name = "", .name = name},
                                   .notice = {.level = model::Notice::Level::Warning,
                                              .reason = std::string(reason::kInvalidPodCidr),
                                              .message = "spec.podCIDRs: " + quoted(text) + " is not a CIDR and protects nothing"}});
            }
        }
    }
    return facts;
}

}  // namespace penstock::semantics
