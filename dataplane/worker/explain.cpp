// SPDX-License-Identifier: Apache-2.0
// `explain`: a dry run of the pipeline. It calls the same pure functions as the stages (place, step, admit,
// peek, must_translate, next_hop) and reports each result. Where a stage would allocate something (a port, a
// table entry, a token), it reports that and allocates nothing.
#include <rte_cycles.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/nat/masquerade.hpp"
#include "dataplane/nat/snat.hpp"
#include "dataplane/packet/parse_any.hpp"
#include "dataplane/pipeline/forward.hpp"
#include "dataplane/pipeline/opening/admit.hpp"
#include "dataplane/pipeline/opening/strays.hpp"
#include "dataplane/pipeline/placement.hpp"
#include "dataplane/worker/explain_strays.hpp"
#include "dataplane/worker/explain_text.hpp"
#include "dataplane/worker/inspect.hpp"
#include "dataplane/worker/known_connection.hpp"
#include "dataplane/worker/placement_text.hpp"
#include "dataplane/worker/snat_forecast.hpp"
#include "dataplane/worker/worker_set_impl.hpp"

namespace penstock::worker {
namespace {

using packet::FlowKey;

class DryRun {
 public:
    DryRun(const WorkerSet::Impl& impl, const config::Snapshot& snapshot, const ExplainQuery& query)
        : impl_(impl), snapshot_(snapshot), query_(query) {
        out_.worker = query_.receiver;
        packet_.key = query_.key;
        packet_.kind = packet::PacketKind::Flow;
        packet_.ttl = 64;
        if (query_.key.protocol == Protocol::Tcp) {
            packet_.tcp_flags.bits = query_.tcp_not_syn ? packet::TcpFlags::kAck : packet::TcpFlags::kSyn;
        } else if (query_.key.protocol == Protocol::Sctp) {
            packet_.sctp_event = packet::SctpEvent::Init;
        }
    }

    Explanation run() {
        receive();
        if (!decided_) {
            owner();
        }
        if (!decided_) {
            connection();
        }
        return std::move(out_);
    }

 private:
    void step(const char* stage, std::string finding) { out_.steps.push_back({stage, std::move(finding)}); }
    void decide(const char* verdict) {
        out_.verdict = verdict;
        decided_ = true;
    }
    void drop(DropReason reason) {
        out_.reason = reason;
        decide("drop");
    }

    void receive() {
        step("receive", "NicPort " + std::to_string(query_.port.value) + " takes " + query_.key.to_string() +
                            " into worker " + std::to_string(query_.receiver.value) +
                            "'s burst; configuration generation " + std::to_string(snapshot_.generation));
        const IpAddr& source = query_.key.source;
        const IpAddr& destination = query_.key.destination;
        if (packet::is_martian(source, destination)) {
            step("classify", source == destination ? "dropped: source and destination address are the same"
                                                   : "dropped: invalid source address " + source.to_string());
            return drop(DropReason::MartianSource);
        }
        if (snapshot_.blocked_sources != nullptr && snapshot_.blocked_sources->contains(source)) {
            step("blocklist", "the source is in the blocklist (--blocklist)");
            return drop(DropReason::SourceBlocked);
        }
        // RFC 4291, 2.5.6. For IPv4, only the host's own stack handles such addresses specially.
        if (!destination.is_v4() && (source.is_link_local() || destination.is_link_local())) {
            return punt_or_drop("a packet with a link-local address is not forwarded");
        }
        if (packet::is_for_the_host(destination)) {
            return punt_or_drop("no Service can have the address " + destination.to_string());
        }
        step("classify",
             "a whole " + std::string(to_string(destination.family())) +
                 " packet with a complete header that may belong to a flow; assumed: TTL above 1, no IP "
                 "options, no more bytes than the MTU");
    }

    // Packets that cannot belong to a flow are for Linux, unless only a Service has the address.
    void punt_or_drop(const std::string& finding) {
        const IpAddr& destination = query_.key.destination;
        if (snapshot_.services->is_vip(destination) && !snapshot_.routes->is_local(destination)) {
            step("classify", finding + ", and the address belongs only to Services");
            return drop(DropReason::VipPortClosed);
        }
        step("classify", finding + ": Linux decides");
        decide("punt");
    }

    void owner() {
        const pipeline::WorkerContext& context = context_of(query_.receiver);
        const pipeline::Arrived arrived{query_.receiver, query_.port,
                                        context.ports[query_.port.value].promises};
        searched_ = searched_workers(packet_, snapshot_, context, arrived);
        if (context.workers == 1) {
            return step("owner", "worker 0, the only worker");
        }
        const pipeline::Candidates candidates =
            pipeline::place(query_.key, snapshot_, context.owner, arrived, pipeline::Ask::EachWorker);
        owner_ = candidates.workers[candidates.count - 1];
        std::string finding = "worker " + std::to_string(owner_.value) + ", by " +
                              placement_text(query_.key, snapshot_, context.owner, arrived);
        finding += owner_ == query_.receiver ? "" : "; a packet without a known connection is handed to it";
        if (candidates.is_foretold) {
            finding += owner_ == query_.receiver
                           ? ""
                           : ", although RSS or a flow rule should have delivered it there";
        } else if (candidates.count > 1) {
            finding += "; worker " + std::to_string(candidates.workers[0].value) +
                       " is searched first for flows from before a policy change";
        }
        step("owner", finding);
    }

    [[nodiscard]] const pipeline::WorkerContext& context_of(WorkerId id) const {
        return impl_.workers_[id.value]->context();
    }

    void connection() {
        for (auto worker = searched_.begin(); worker != searched_.end() && !known_; ++worker) {
            known_ = find_connection(context_of(*worker), query_.key);
        }
        share_ = share_finding(snapshot_, query_.key, query_.port);
        const bool is_refused = !known_ && !(share_ && share_->precedes_copies) && !copied();
        out_.worker = known_ ? known_->worker : owner_;
        if (!known_) {
            step("connection",
                 (is_refused ? "none, because its copy cannot be taken over"
                             : "none: this would be the first packet of a flow") +
                     unreached_text(searched_, std::bind_front(&DryRun::context_of, this), query_.key));
            return begin();
        }
        // The worker that opens flows may have a connection of this tuple as well, from before or after a
        // change of the Service's source mode.
        if (known_->worker != owner_ && effect_on(*known_, packet_) == Effect::Reopens) {
            step("connection", finding_of(*known_) + "; it is removed, and the packet is handed to worker " +
                                   std::to_string(owner_.value));
            out_.worker = owner_;
            known_ = find_connection(context_of(owner_), query_.key);
            if (!known_) {
                step("connection", "none on that worker: a new flow may be opened in its place");
                return begin();
            }
        }
        known_connection();
    }

    CoarseTime now() const { return context_of({0}).clock.at(context_of({0}).timeline.shown(rte_rdtsc())); }

    std::string finding_of(const KnownConnection& known) const {
        return connection_text(known, context_of(known.worker).clock, now());
    }

    // Sets the connection that the packet takes over from its copy. False: the copy is refused.
    bool copied() {
        const auto copy = find_copy(packet_, snapshot_, std::bind_front(&DryRun::context_of, this), now());
        known_ = copy ? copy->connection : std::nullopt;
        return !copy || known_;
    }

    void known_connection() {
        const bool is_forward = known_->direction == conn::Direction::Forward;
        const std::string finding = finding_of(*known_);
        const auto refuse = [&](DropReason reason) {
            step("connection", finding + "; dropped: " + std::string(text_of(reason).meaning));
            drop(reason);
        };
        switch (effect_on(*known_, packet_)) {
            case Effect::Continues:
                step("connection", finding);
                return leave(is_forward ? known_->connection.reverse.reversed()
                                        : known_->connection.forward.reversed());
            case Effect::Reopens:
                step("connection", finding + "; it is removed, and a new flow may be opened in its place");
                return begin();
            case Effect::Resets:
                step("connection", finding + "; the packet is answered by RSTs to both sides");
                return reject();
            case Effect::IsInvalid:
                return refuse(DropReason::InvalidTcpFlags);
            case Effect::IsStray:
                return refuse(DropReason::SctpNoAssociation);
            case Effect::IsNotAllowed:
                return refuse(DropReason::RejectNotAllowed);
        }
    }

    // The packet is answered, unless no route leads to its sender.
    void reject() {
        if (pipeline::has_way_to(*snapshot_.routes, query_.key.source)) {
            return decide("reject");
        }
        step("route", "no route to the sender " + query_.key.source.to_string() +
                          " through a port of the gateway: it gets no answer");
        drop(DropReason::NoRoute);
    }

    // A packet of no connection: a stray, or the first one of a flow.
    void begin() {
        if (share_) {
            step("share", share_->text);
        }
        share_ && share_->stray_to ? leave(query_.key, share_->stray_to) : open();
    }

    void open() {
        const lb::FrontendRow* frontend = snapshot_.services->find(
            query_.key.destination, query_.key.destination_port, query_.key.protocol);
        if (frontend != nullptr) {
            out_.frontend_class = frontend->cls;
        }
        step("service", service_text(snapshot_, query_.key, frontend));
        const pipeline::Admission admission = pipeline::admit(snapshot_, frontend, packet_, query_.port);
        switch (admission.kind) {
            case pipeline::Admission::Kind::Punt:
                return decide("punt");
            case pipeline::Admission::Kind::Drop:
                step("admit",
                     "dropped: " + (admission.reason == DropReason::ReversePath
                                        ? reverse_path_text(snapshot_, query_.key.source, query_.port)
                                        : std::string(text_of(admission.reason).meaning)));
                return drop(admission.reason);
            case pipeline::Admission::Kind::Reject:
                step("admit", rejection_text(snapshot_, query_.key, admission));
                return reject();
            case pipeline::Admission::Kind::PickUp:
                step("admit",
                     "picked up as a mid-stream segment of a connection that another gateway has opened "
                     "(--midstream-pickup)");
                return choose(*frontend, *admission.set);
            case pipeline::Admission::Kind::Open:
                break;
        }
        step("admit", frontend->filter == nullptr
                          ? "any client may open a flow"
                          : "loadBalancerSourceRanges of the Service list this client");
        choose(*frontend, *admission.set);
    }

    void choose(const lb::FrontendRow& frontend, const lb::BackendSet& set) {
        const lb::Service& service = *frontend.service;
        const pipeline::WorkerContext& context = context_of(owner_);
        const std::optional<uint32_t> pinned = pinned_position(context, service, set);
        const lb::Backend& backend =
            set.usable[pinned ? *pinned : lb::peek(service, set, query_.key, context.schedulers)];
        if (!pinned) {
            step("schedule", std::string(lb::to_string(service.scheduler)) + " would select " +
                                 socket_text(backend.address, backend.port) + " next on worker " +
                                 std::to_string(owner_.value));
        }
        FlowKey after{query_.key.source, backend.address,     query_.key.source_port,
                      backend.port,      query_.key.protocol, {}};
        const bool keep = set.source == lb::SourceMode::Keep;
        const bool is_converted = query_.key.source.is_v4() != backend.address.is_v4();
        const bool translates = nat::must_translate(keep, query_.key.source, backend.address);
        const SnatForecast snat(snapshot_, context, query_.key, known_ ? &*known_ : nullptr);
        const bool is_taken = snat.is_in_use(after.reversed());
        if (packet_.tcp_flags.has(packet::TcpFlags::kAck) && (translates || is_taken)) {
            const char* why =
                is_converted ? "the client is of the other family" : "the backend is the client itself";
            step("snat", "rejected with RST: " +
                             (translates ? why + std::string(", and its address would have to be translated")
                                         : taken_text(backend)));
            return reject();
        }
        if (!translates && !is_taken) {
            step("snat", "none: this backend set keeps the client's address and port");
            return leave(after);
        }
        const std::optional<route::NextHop> next_hop = snapshot_.routes->next_hop(backend.address);
        if (!next_hop && snapshot_.routes->is_host_address(backend.address) && !is_converted) {
            const bool keeps_port =
                !is_taken && (!translates || context.owner.of_client(query_.key.source) == owner_);
            step("snat",
                 "none: the endpoint is on the gateway host, which accepts a client's packet only with the "
                 "client's own address" +
                     (keeps_port ? std::string()
                                 : "; the source port becomes one of worker " + std::to_string(owner_.value) +
                                       "'s share" + (is_taken ? ", because " + taken_text(backend) : "")));
            after.source_port = keeps_port ? after.source_port : 0;
            return leave(after);
        }
        if (!next_hop) {
            step("route", "no route to " + backend.address.to_string() + " through a port of the gateway");
            return drop(DropReason::NoRoute);
        }
        const uint8_t group = pipeline::snat_group_of(snapshot_, frontend, query_.key.source);
        const std::vector<const nat::SnatAddress*> in_turn = nat::choices_in_turn(
            *snapshot_.snat, {.endpoint = backend.address,
                              .endpoint_port = backend.port,
                              .protocol = query_.key.protocol,
                              .egress = next_hop->egress,
                              .client_hash = context.owner.client_hash(query_.key.source),
                              .group = group});
        if (in_turn.empty()) {
            step("snat", "no SNAT address of " + std::string(to_string(backend.address.family())) +
                             " is usable on the NicPort towards the backend");
            return drop(DropReason::NoSnatAddress);
        }
        if (translates) {
            if (const std::optional<FlowKey> former = snat.former_source(after, in_turn)) {
                step("snat", "the source becomes " + socket_text(former->source, former->source_port) +
                                 ", which the finished connection had");
                return leave(*former);
            }
        }
        const SnatForecast::PortChoice choice = snat.choose_port(backend, in_turn);
        if (choice.source == nullptr) {
            step("snat", "all " + std::to_string(choice.use.usable) + " SNAT ports of worker " +
                             std::to_string(owner_.value) + " towards " +
                             socket_text(backend.address, backend.port) +
                             " are taken, and no connection that holds one may be evicted");
            return drop(DropReason::SnatPortsExhausted);
        }
        after.source = choice.source->address;
        after.source_port = 0;
        const bool may_keep_port = query_.key.protocol == Protocol::Sctp && choice.is_free && translates;
        const bool may_differ = !choice.is_free && in_turn.size() > 1;
        step("snat", "the source becomes " + snat_address_text(*choice.source, group) +
                         (may_differ ? " or another SNAT address, with " : " with ") +
                         (may_keep_port ? "the client's own port if it is free, otherwise " : "") +
                         (choice.is_free ? "a free port " : "a port reclaimed from another connection, ") +
                         selection_text(snat.rule_of_replies(backend, *choice.source), owner_) +
                         (choice.is_free ? std::string() : reclaim_text(choice.use)) +
                         (!keep          ? std::string()
                          : !translates  ? ", because " + taken_text(backend)
                          : is_converted ? ", because the client is of the other family"
                                         : ", because the client is the backend itself"));
        leave(after);
    }

    // One client socket can reach one endpoint by two frontends, with equal replies if the source is kept.
    std::string taken_text(const lb::Backend& backend) const {
        return "the client's address and port already have a flow to " +
               socket_text(backend.address, backend.port);
    }

    // Position in the set of the backend in the client's entry; empty: there is no entry that applies here.
    std::optional<uint32_t> pinned_position(const pipeline::WorkerContext& context,
                                            const lb::Service& service, const lb::BackendSet& set) {
        if (!service.has_affinity()) {
            return std::nullopt;
        }
        const std::string scope =
            service.affinity_scope() == lb::AffinityScope::Service ? ", on all ports of the Service" : "";
        const auto found = context.affinity.find(
            pipeline::affinity_question(context, service, set, query_.key.source, now()));
        if (found.position == lb::AffinityTable::Answer::kNone) {
            step("affinity",
                 "none: the client will be pinned to the backend that the scheduler selects" + scope);
            return std::nullopt;
        }
        const lb::Backend& backend = set.usable[found.position];
        const uint64_t age_ms =
            context.clock.to_milliseconds(units_between(lb::AffinityTable::refreshed(found.pin), now()));
        step("affinity", "pinned to " + socket_text(backend.address, backend.port) + ", refreshed " +
                             std::to_string(age_ms / 1000) + " s ago, for " +
                             std::to_string(service.affinity_timeout_s) + " s" + scope);
        return found.position;
    }

    // `link`: of another gateway, to which the packet goes as a stray; empty: it goes to its destination.
    void leave(const FlowKey& after, const std::optional<IpAddr>& link = {}) {
        out_.leaves_as = after;
        if (after.destination.is_v4() != query_.key.destination.is_v4()) {
            step("convert", "the packet is converted to " +
                                std::string(to_string(after.destination.family())) + " (RFC 7915)");
        }
        const auto next_hop = snapshot_.routes->next_hop(link.value_or(after.destination));
        if (!next_hop && snapshot_.routes->is_host_address(after.destination)) {
            const NicPortId back = pipeline::twin_towards(*snapshot_.routes, after.source);
            step(
                "route",
                after.destination.to_string() +
                    " is an address of the gateway host: delivered to the host through the twin of NicPort " +
                    std::to_string((back.is_set() ? back : query_.port).value));
            return decide("punt");
        }
        if (!next_hop) {
            step("route", "no route to " + after.destination.to_string() + " through a port of the gateway");
            return drop(DropReason::NoRoute);
        }
        out_.egress = next_hop->egress;
        out_.next_hop = next_hop->address;
        step("route",
             "leaves through NicPort " + std::to_string(next_hop->egress.value) +
                 (next_hop->address == after.destination ? ", the destination is on the link"
                                                         : ", by gateway " + next_hop->address.to_string()));
        if (impl_.detached.is_detached(next_hop->egress)) {
            step("route", "the device of NicPort " + std::to_string(next_hop->egress.value) + " is gone");
            return drop(DropReason::PortRemoved);
        }
        const route::Neighbour* neighbour = next_hop->neighbour;
        if (neighbour == nullptr || !neighbour->is_usable()) {
            step("neighbour", next_hop->address.to_string() + " is " +
                                  (neighbour == nullptr ? "unknown" : route::to_string(neighbour->state)) +
                                  ": the packet is held until Linux has resolved the address");
            return decide("hold");
        }
        out_.next_hop_mac = neighbour->mac;
        step("neighbour", next_hop->address.to_string() + " is at " + neighbour->mac.to_string() + " (" +
                              route::to_string(neighbour->state) + ")");
        decide("transmit");
    }

    const WorkerSet::Impl& impl_;
    const config::Snapshot& snapshot_;
    const ExplainQuery& query_;
    packet::Parsed packet_;                 // as far as the query describes it
    std::vector<WorkerId> searched_;        // for the packet's connection, in turn
    std::optional<KnownConnection> known_;  // that the packet belongs to, or would reopen
    std::optional<ShareFinding> share_;     // of a packet of no connection
    WorkerId owner_{0};                     // opens the flow
    bool decided_ = false;
    Explanation out_;
};

}  // namespace

NicPortId Inspector::arrival_port(const IpAddr& source) const {
    const config::Snapshot snapshot = workers_->current();
    const route::Hop* const back = snapshot.routes->hop(source);
    return back == nullptr ? NicPortId{0} : back->egress;
}

Explanation Inspector::explain(const ExplainQuery& query) const {
    const config::Snapshot snapshot = workers_->current();
    return DryRun(*workers_->impl_, snapshot, query).run();
}

}  // namespace penstock::worker
