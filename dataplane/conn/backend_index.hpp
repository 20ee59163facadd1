// SPDX-License-Identifier: Apache-2.0
// Lists the connections of each backend in a worker's table. These are doubly linked lists beside the table,
// with a link of eight bytes for each unit and a head for each BackendId. The lists are written only when a
// connection opens or ends, so established packets do not touch them. They serve to find the flows of a
// removed endpoint without a search of the whole table.
//
//   heads[backend] -> unit 7 <-> unit 2 <-> unit 40    newest first; a pair (IPv6) by its even unit
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"

namespace penstock::conn {

// The list node of one unit. Units are counted from 1, so that zeroed memory is an empty index.
struct BackendLink {
    uint32_t next = 0;
    uint32_t previous = 0;
};

// Written by one thread. The caller provides the memory, zeroed. Only one walk runs at a time. It continues
// at its position, whatever has been opened and erased meanwhile.
class BackendIndex {
 public:
    // `links`: one for each unit of the table. `heads`: one for each BackendId.
    BackendIndex(std::span<BackendLink> links, std::span<uint32_t> heads) noexcept
        : links_(links), heads_(heads) {}

    // Call before add(): first prefetch the line of the head, then, when it has arrived, that of the newest
    // flow, which add() changes too.
    PENSTOCK_ALWAYS_INLINE void prefetch_head(BackendId backend) const noexcept {
        prefetch_read(&heads_[backend.value]);
    }
    PENSTOCK_ALWAYS_INLINE void prefetch_newest(BackendId backend) const noexcept {
        prefetch_read(&links_[heads_[backend.value] == 0 ? 0 : heads_[backend.value] - 1]);
    }
    // Call before remove(): prefetches the connection's neighbours in the list.
    PENSTOCK_ALWAYS_INLINE void prefetch_neighbours(ConnectionIndex index) const noexcept {
        const BackendLink& link = links_[index.value];
        prefetch_read(&links_[link.next == 0 ? index.value : link.next - 1]);
        prefetch_read(&links_[link.previous == 0 ? index.value : link.previous - 1]);
    }

    // Call once for each connection, after its insertion and before its removal, with the backend of its
    // entry.
    void add(ConnectionIndex index, BackendId backend) noexcept {
        uint32_t& head = heads_[backend.value];
        links_[index.value] = {head, 0};
        if (head != 0) {
            links_[head - 1].previous = index.value + 1;
        }
        head = index.value + 1;
    }
    void remove(ConnectionIndex index, BackendId backend) noexcept {
        const BackendLink link = links_[index.value];
        PENSTOCK_ASSERT(link.previous != 0 || heads_[backend.value] == index.value + 1);
        (link.previous == 0 ? heads_[backend.value] : links_[link.previous - 1].next) = link.next;
        if (link.next != 0) {
            links_[link.next - 1].previous = link.previous;
        }
        if (walk_ == index.value + 1) {
            walk_ = link.next;
        }
    }

    // A walk visits every connection that the backend has now and that is still live when its turn comes. It
    // does not visit connections that open later.
    void begin_walk(BackendId backend) noexcept { walk_ = heads_[backend.value]; }
    [[nodiscard]] bool is_walk_over() const noexcept { return walk_ == 0; }
    // Writes the next connections of the walk, at most out.size(), and returns their number.
    uint32_t walk(std::span<ConnectionIndex> out) noexcept {
        uint32_t count = 0;
        for (; count < out.size() && walk_ != 0; walk_ = links_[walk_ - 1].next) {
            out[count++] = {walk_ - 1};
        }
        return count;
    }
    // Returns to a connection that walk() has just returned: the walk will visit it, and those after it,
    // again.
    void walk_again_from(ConnectionIndex index) noexcept { walk_ = index.value + 1; }

    // The backend's connections, newest first.
    template <typename Visit>
    void for_each(BackendId backend, Visit&& visit) const {
        for (uint32_t at = heads_[backend.value]; at != 0; at = links_[at - 1].next) {
            visit(ConnectionIndex{at - 1});
        }
    }

 private:
    std::span<BackendLink> links_;
    std::span<uint32_t> heads_;
    uint32_t walk_ = 0;  // the unit that it visits next, counted from 1; 0: no more
};

}  // namespace penstock::conn
