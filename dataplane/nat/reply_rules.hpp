// SPDX-License-Identifier: Apache-2.0
// The ReplyHashes of the NicPorts, prepared for the workers: built once at start, read by all. A rule maps a
// reply to the worker that receives it, and, in reverse, a worker to the SNAT ports with replies that arrive
// there. The hash is linear (toeplitz.hpp), so one look-up yields the worker's own ports in a block of 64:
//
//   entry(reply to port 64 b + i) = (hash(reply to port 0) ^ hash of 64 b alone ^ hash of i alone) & mask
//                                   `- per endpoint         `- per block         `- own[worker][x]: bit per i
//                                     `------------- x ------------'
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/nat/port_blocks.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "dataplane/nat/toeplitz.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::nat {

// The ports of a block that belong to one worker. A view, built for each call.
class OwnPorts {
 public:
    // All ports: the caller iterates over the worker's blocks only, or there is one worker.
    constexpr OwnPorts() = default;
    // Whole blocks in turn, as ReplyOwner::of_snat_port() assigns them.
    constexpr OwnPorts(WorkerId self, uint32_t workers) noexcept : workers_(workers), self_(self) {}
    // By hash: `words` is the worker's own[], `base` the hash of a reply to port 0.
    OwnPorts(const Toeplitz& toeplitz, const uint64_t* words, uint32_t mask, uint32_t base,
             IpFamily family) noexcept
        : toeplitz_(&toeplitz), words_(words), mask_(mask), base_(base), workers_(0), family_(family) {}

    // The ports as bits.
    [[nodiscard]] uint64_t in_block(uint32_t block) const noexcept {
        if (workers_ == 1) [[likely]] {
            return ~0ULL;
        }
        if (words_ != nullptr) {
            return words_[(base_ ^ toeplitz_->of_destination_port(
                                       family_, static_cast<L4Port>(block * kPortsPerBlock))) &
                          mask_];
        }
        return block % workers_ == self_.value ? ~0ULL : 0;
    }

 private:
    const Toeplitz* toeplitz_ = nullptr;
    const uint64_t* words_ = nullptr;
    uint32_t mask_ = 0;
    uint32_t base_ = 0;
    uint32_t workers_ = 1;
    WorkerId self_{0};
    IpFamily family_ = IpFamily::V4;
};

// The rule of one NicPort.
class ReplyRule {
 public:
    // `hash` must have no obstacle for this number of workers.
    ReplyRule(NicPortId port, const ReplyHash& hash, uint32_t workers, uint32_t number = 0);

    [[nodiscard]] NicPortId port() const noexcept { return port_; }
    // Whether both rules assign the same packet to the same worker, if both cover it. Example: two ports of a
    // driver that uses the same key and table for all ports.
    [[nodiscard]] bool is_alike(const ReplyRule& other) const noexcept { return number_ == other.number_; }
    [[nodiscard]] bool covers(IpFamily family, Protocol protocol) const noexcept {
        return kinds_.covers(family, protocol);
    }

    // The steps by which a packet is assigned; for explain.
    struct Way {
        uint32_t hash;
        uint32_t entry;  // of the table
        WorkerId worker;
    };
    [[nodiscard]] Way way_of(const packet::FlowKey& as_received) const noexcept {
        const uint32_t hash = toeplitz_.of(as_received);
        return {hash, hash & mask_, worker_of_[hash & mask_]};
    }
    [[nodiscard]] WorkerId worker_of(const packet::FlowKey& as_received) const noexcept {
        return way_of(as_received).worker;
    }
    // The destination ports for which `self` receives a reply with the other three fields of `reply`.
    [[nodiscard]] OwnPorts own_ports(WorkerId self, packet::FlowKey reply) const noexcept;

 private:
    [[nodiscard]] static constexpr size_t is_v6(IpFamily family) noexcept {
        return family == IpFamily::V6 ? 1 : 0;
    }

    NicPortId port_;
    uint32_t number_;  // one for each pair of key and table
    uint32_t mask_;
    Toeplitz toeplitz_;
    ReplyHash kinds_;  // without key and table
    std::vector<WorkerId> worker_of_;
    std::array<std::vector<uint64_t>, 2> own_;  // by family: [worker * entries + x]
};

struct PortReplyHash {
    NicPortId port;
    const ReplyHash* hash;
};

// The rules of all NicPorts.
class ReplyRules {
 public:
    // No rules: SNAT ports belong to workers in blocks.
    ReplyRules() = default;
    // InvalidArgument names the obstacle, which the drivers' plan should have detected.
    static Result<ReplyRules> create(std::span<const PortReplyHash> hashes, uint32_t workers);

    [[nodiscard]] bool empty() const noexcept { return rules_.empty(); }
    // The rule of the NicPort. Null: its queue selection is not predictable.
    [[nodiscard]] const ReplyRule* of_port(NicPortId port) const noexcept {
        return port.value < by_port_.size() ? by_port_[port.value] : nullptr;
    }
    // The rule for replies to a SNAT address with this SnatAddress::egress. It is the rule of that NicPort
    // or, if replies may arrive on any NicPort, of the first one with a rule. Null: the port's block
    // determines the owner of the reply.
    [[nodiscard]] const ReplyRule* of_replies(NicPortId egress, IpFamily family,
                                              Protocol protocol) const noexcept {
        const ReplyRule* rule = egress.is_set() ? of_port(egress) : first_;
        return rule != nullptr && rule->covers(family, protocol) ? rule : nullptr;
    }

 private:
    std::vector<std::unique_ptr<const ReplyRule>> rules_;
    std::array<const ReplyRule*, limits::kNicPortsMax> by_port_{};
    const ReplyRule* first_ = nullptr;
};

}  // namespace penstock::nat
