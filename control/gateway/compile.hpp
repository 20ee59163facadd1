// From what the control plane desires to the table that workers read. A service port is accepted or refused alone (GEN-001); one that has
// not changed keeps its very object, so the cost of rings and backends follows the change, not the whole. Pure but for the ids it hands
// out.
//
//   Desired services ---+
//   NodePort rule ------+--> compile() --> ServiceTable (frontends of all, NodePorts filled in) + what is in force of each + refusals
//   own addresses ------+        ^
//   what was in force ----------- + ids (stable)
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/gateway/id_map.hpp"
#include "control/model/desired.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/lb/service_table.hpp"

namespace penstock::gateway {

// Service ports are shared, not copied: an unchanged one is the same pointer from the stream to the table.
using DesiredServices = std::map<model::ServiceKey, std::shared_ptr<const model::Service>>;

// One service port as it is programmed.
struct Programmed {
    std::shared_ptr<const model::Service> desired;  // the version in force
    std::shared_ptr<const lb::Service> service;
    std::shared_ptr<const lb::SourceFilter> filter;  // of its filtered frontends; null where it has none
};

struct Compiled {
    std::shared_ptr<const lb::ServiceTable> table = std::make_shared<lb::ServiceTable>();
    std::map<model::ServiceKey, Programmed> services;
    std::map<model::ServiceKey, std::string> refusals;  // desired, but not programmed as desired: the thing and the rule
};

struct CompileInput {
    const DesiredServices& desired;
    const model::NodePortAddresses& node_ports;
    const std::vector<model::PortAddress>& addresses;  // on all twins
};

// Where a service port is refused, its version of `previous`, if any, stays in force, less those frontends that others own now (SVC-018). A
// service port that was in force is considered before a new one, so that a full table refuses the newest (GEN-009). Ids of what
// went are released, and then what capacity refused is tried once more. Internal only for a bug: the caller keeps `previous`, and `ids` are
// as they were.
[[nodiscard]] Result<Compiled> compile(const CompileInput& input, const Compiled& previous, IdMap& ids);

}  // namespace penstock::gateway
