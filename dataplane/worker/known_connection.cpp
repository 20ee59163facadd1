// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/known_connection.hpp"

#include "dataplane/base/check.hpp"
#include "dataplane/conn/sctp_state.hpp"
#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/pipeline/opening/foreign.hpp"
#include "dataplane/pipeline/opening/take_over.hpp"

namespace penstock::worker {
namespace {

Effect effect_on_tcp(const KnownConnection& known, packet::TcpFlags flags) {
    switch (conn::step(known.connection.tcp_state(), known.direction, flags).action) {
        case conn::TcpAction::Reopen:
            return Effect::Reopens;
        case conn::TcpAction::Reset:
            return Effect::Resets;
        case conn::TcpAction::Invalid:
            return Effect::IsInvalid;
        default:
            return Effect::Continues;
    }
}

// The effect of an INIT depends on the state only, not on the tags.
Effect effect_on_association(const KnownConnection& known, packet::SctpEvent event) {
    PENSTOCK_ASSERT(event == packet::SctpEvent::Init);
    const conn::Association association{known.connection.sctp_state(), known.connection.tags};
    switch (conn::step(association, known.direction, {.event = event}).action) {
        case conn::SctpAction::Reopen:
            return Effect::Reopens;
        case conn::SctpAction::Answer:
            return Effect::IsNotAllowed;  // packet::make_reflecting_abort() answers no INIT
        case conn::SctpAction::Stray:
            return Effect::IsStray;
        case conn::SctpAction::WrongTag:
            PENSTOCK_ASSERT(false);  // an INIT has no verification tag (RFC 9260, 8.5.1)
            break;
        case conn::SctpAction::Pass:
            break;
    }
    return Effect::Continues;
}

}  // namespace

std::vector<WorkerId> searched_workers(const packet::Parsed& packet, const config::Snapshot& snapshot,
                                       const pipeline::WorkerContext& receiver,
                                       const pipeline::Arrived& arrived) {
    if (receiver.workers == 1) {
        return {receiver.self};
    }
    std::vector<WorkerId> searched;
    if (arrived.promises.flow_stays_on_queue) {
        searched.push_back(arrived.receiver);
    }
    // With Ask::ReceiverFirst, the pipeline may compute only the first of these candidates.
    const pipeline::Candidates candidates =
        pipeline::place(packet.key, snapshot, receiver.owner, arrived, pipeline::Ask::EachWorker);
    searched.insert(searched.end(), candidates.workers.begin(),
                    candidates.workers.begin() + candidates.count);
    WorkerId owner;
    if (receiver.copies != nullptr) {
        owner = pipeline::owner_of_copy(*receiver.copies, packet, snapshot, receiver.owner);
    }
    if (!owner.is_set() && receiver.moved != nullptr) {
        owner = receiver.moved->owner_of(packet.key);
    }
    if (owner.is_set()) {
        searched.push_back(owner);
    }
    return searched;
}

std::optional<KnownCopy> find_copy(const packet::Parsed& packet, const config::Snapshot& snapshot,
                                   const ContextOf& context_of, CoarseTime now) {
    const pipeline::WorkerContext& any = context_of({0});
    const copies::Store* copies = any.copies;
    if (copies == nullptr || !pipeline::may_take_over(packet)) {
        return std::nullopt;
    }
    const auto copy = copies->find(packet.key);
    if (!copy || copy->is_taken) {
        return std::nullopt;
    }
    const WorkerId owner = pipeline::owner_of_foreign(copy->connection, snapshot, any.owner);
    if (!owner.is_set() || copies->is_refused(*copy, snapshot.generation)) {
        return KnownCopy{};
    }
    const pipeline::WorkerContext& context = context_of(owner);
    pipeline::ForeignConnection foreign{};
    if (!pipeline::prepare_copy(context, snapshot, now, copy->connection, foreign) ||
        find_connection(context, foreign.connection.forward) ||
        find_connection(context, foreign.connection.reverse)) {
        return KnownCopy{};
    }
    return KnownCopy{KnownConnection{.worker = owner,
                                     .unit = KnownConnection::kCopied,
                                     .direction = copy->direction,
                                     .connection = foreign.connection}};
}

std::optional<KnownConnection> find_connection(const pipeline::WorkerContext& context,
                                               const packet::FlowKey& key) {
    const uint32_t end = context.connections.high_water();
    KnownConnection known{.worker = context.self};
    for (known.unit = 0; known.unit < end; ++known.unit) {
        if (!context.connections.read(known.unit, known.connection)) {
            continue;
        }
        if (known.connection.forward == key || known.connection.reverse == key) {
            known.direction =
                known.connection.forward == key ? conn::Direction::Forward : conn::Direction::Reverse;
            return known;
        }
    }
    return std::nullopt;
}

std::string unreached_text(std::span<const WorkerId> searched, const ContextOf& context_of,
                           const packet::FlowKey& key) {
    std::string text;
    const uint32_t workers = context_of({0}).workers;
    for (uint32_t number = 0; number < workers; ++number) {
        const WorkerId id{static_cast<decltype(WorkerId::value)>(number)};
        if (std::ranges::find(searched, id) == searched.end() && find_connection(context_of(id), key)) {
            text +=
                "; worker " + std::to_string(number) + " has one, but this packet does not reach that worker";
        }
    }
    return text;
}

Effect effect_on(const KnownConnection& known, const packet::Parsed& packet) {
    switch (packet.key.protocol) {
        case Protocol::Tcp:
            return effect_on_tcp(known, packet.tcp_flags);
        case Protocol::Sctp:
            return effect_on_association(known, packet.sctp_event);
        case Protocol::Udp:
            break;
    }
    return Effect::Continues;
}

}  // namespace penstock::worker
