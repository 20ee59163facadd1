// SPDX-License-Identifier: Apache-2.0
// One state in transmission to a gateway, cut into messages on the fly: at any size of the state, no more
// than one part is held as a message. The gateway applies the parts as one. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/model/desired.hpp"
#include "penstock/v1/config.pb.h"

namespace penstock::sync {

// Target size of a part; a part ends with a whole Kubernetes Service. Small enough that both sides work in
// parallel, large enough that the cost per message is negligible.
inline constexpr size_t kPartBytes = size_t{1} << 20;
// A single Kubernetes Service larger than this is cut between two of its ports. Far below the 64 MiB at which
// the gateway refuses a message.
inline constexpr size_t kPartBytesMax = size_t{16} << 20;

class OutgoingState {
 public:
    struct Name {
        std::string source;
        uint64_t version = 0;
        std::optional<uint64_t> base;  // set: a delta on this version of the same source; unset: a full state
    };
    struct Content {
        std::vector<std::shared_ptr<const model::Service>> services;  // sorted by key
        std::vector<model::ServiceKey> removed;                       // sorted; deltas only
        std::optional<model::Environment> environment;
    };
    OutgoingState(Name name, Content content) : name_(std::move(name)), content_(std::move(content)) {}

    // A state has at least one part, which may be empty.
    [[nodiscard]] bool is_done() const noexcept { return done_; }
    // The next part. Do not call after the last one.
    [[nodiscard]] v1::StateMessage next_part();

 private:
    // Adds the next service port to the part. Returns its size on the wire.
    size_t add_next(v1::StateMessage& part);
    // The key that add_next() takes next; null at the end.
    [[nodiscard]] const model::ServiceKey* next_key() const;
    [[nodiscard]] v1::StateMessage empty_part() const;

    Name name_;
    Content content_;
    size_t services_sent_ = 0;
    size_t removed_sent_ = 0;
    bool done_ = false;
};

}  // namespace penstock::sync
