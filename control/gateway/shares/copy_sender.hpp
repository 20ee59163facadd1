// SPDX-License-Identifier: Apache-2.0
// Sends copies of this gateway's connections to the other gateways of its shares (docs/adr/0050): one
// copies::Sweep for each stream, on the thread of its call. A pass over the tables takes about a second, most
// of which the thread sleeps. The first pass of a stream is as fast as its receiver reads. Workers take no
// part.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "control/gateway/shares/gateway_shares.hpp"
#include "control/gateway/shares/link_holder.hpp"
#include "control/rpc/gateway.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/copies/store.hpp"
#include "dataplane/copies/sweep.hpp"

namespace penstock::gateway {

// The format of records in streams; raised with each change of dataplane/copies/record.hpp.
inline constexpr uint32_t kCopyFormat = 1;

// Whether two gateways of the plan copy connections to each other, as an error if not. NotFound: `other` is
// not in the plan. PermissionDenied: no share in common, or one of them has no address.
[[nodiscard]] Status may_copy(const GatewayShares& own, const std::string& other);

class CopySender final : public rpc::PeerTarget {
 public:
    struct Options {
        std::function<std::shared_ptr<const GatewayShares>()> shares;  // the plan in force; any thread
        std::vector<const conn::Table*> tables;  // of all workers; they outlive the sender
        CoarseClock clock{TscRate{}};            // of the tables' times
        std::function<CoarseTime()> now;         // any thread
        // Connections of shares of which this gateway is the heir are copied at any age: it has them because
        // the primary was away, and they end if it returns without them.
        std::chrono::seconds share_age{3};
        std::function<bool()> has_returned = [] { return true; };  // ShareReturn; any thread
        std::function<bool()> drains = [] { return false; };       // any thread
        // What this gateway reports on links without routers. Any thread; null: nothing.
        std::function<HolderReport()> holder = {};
        std::chrono::milliseconds pass{1'000};  // length of a pass
        const copies::Store* store = nullptr;  // with own copies, which are sent like connections; null: none
        // CopyBook::give_back(). Any thread; null: there are no copies.
        std::function<bool(const std::string& gateway, uint32_t& from, std::vector<std::byte>& out)>
            give_back = {};
        // The gateway is one that will give this one's connections back, and has not yet. Any thread.
        std::function<bool(const std::string& gateway)> is_recovering = [](const std::string&) {
            return false;
        };
    };
    explicit CopySender(Options options) : options_(std::move(options)) {}

    [[nodiscard]] Result<std::vector<std::string>> certificate_names_of(
        const std::string& gateway) const override;
    Status send_copies(const v1::FollowConnectionsRequest& request, rpc::CopyReceiver& receiver) override;

    // Of all streams of one gateway since the start.
    struct Sent {
        uint64_t records = 0;
        uint64_t held = 0;  // copies that the gateway has by its stream; 0 without one
        uint32_t streams = 0;
        // Connections of shares of which this gateway is the heir, by the last pass of the stream.
        uint64_t as_heir = 0;
    };
    // Any thread.
    [[nodiscard]] Sent sent_to(const std::string& gateway) const;

 private:
    class Stream;
    bool give_back(Stream& stream, const std::string& gateway, rpc::CopyReceiver& receiver) const;

    const Options options_;
    mutable std::mutex mutex_;
    std::map<std::string, Sent> sent_;  // by gateway
};

}  // namespace penstock::gateway
