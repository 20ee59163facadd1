// Which connections of a worker's table belong to a backend: doubly linked lists beside the table, a link of eight bytes for each of its
// units and a head for each BackendId. Written when a connection opens or ends and by nothing between, so that established packets never
// meet it. For who must find the flows of an endpoint that is gone without going through the whole table.
//
//   heads[backend] -> unit 7 <-> unit 2 <-> unit 40     newest first; a pair's connection (IPv6) is its even unit
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/ids.hpp"

namespace penstock::conn {

// One unit's place in its backend's list. Units are counted from 1, so that zeroed memory is an empty index.
struct BackendLink {
    uint32_t next = 0;
    uint32_t previous = 0;
};

// Pure bookkeeping of the one writer; its memory is handed in zeroed. There is one walk at a time, which goes on where it stopped whatever
// was opened and erased meanwhile.
class BackendIndex {
 public:
    // `links`: one for each unit of the table. `heads`: one for each BackendId.
    BackendIndex(std::span<BackendLink> links, std::span<uint32_t> heads) noexcept
        : links_(links), heads_(heads) {}

    // For who will add(): first the head's line, and when that has arrived the newest flow's, which changes too.
    PENSTOCK_ALWAYS_INLINE void prefetch_head(BackendId backend) const noexcept {
        prefetch_read(&heads_[backend.value]);
    }
    PENSTOCK_ALWAYS_INLINE void prefetch_newest(BackendId backend) const noexcept {
        prefetch_read(&links_[heads_[backend.value] == 0 ? 0 : heads_[backend.value] - 1]);
    }
    // For who will remove(): what lies beside it in the list.
    PENSTOCK_ALWAYS_INLINE void prefetch_neighbours(ConnectionIndex index) const noexcept {
        const BackendLink& link = links_[index.value];
        prefetch_read(&links_[link.next == 0 ? index.value : link.next - 1]);
        prefetch_read(&links_[link.previous == 0 ? index.value : link.previous - 1]);
    }

    // Once for each connection, after it was inserted and before it is erased, with the backend that its entry names.
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

    // A walk meets every connection that the backend has now and that lives when its turn comes; none that opens later.
    void begin_walk(BackendId backend) noexcept { walk_ = heads_[backend.value]; }
    [[nodiscard]] bool is_walk_over() const noexcept { return walk_ == 0; }
    // The next ones, at most out.size(); returns how many.
    uint32_t walk(std::span<ConnectionIndex> out) noexcept {
        uint32_t count = 0;
        for (; count < out.size() && walk_ != 0; walk_ = links_[walk_ - 1].next) {
            out[count++] = {walk_ - 1};
        }
        return count;
    }
    // Back to one that walk() has just given out: the walk will meet it, and those behind it, again.
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
    uint32_t walk_ = 0;  // the unit that it will meet next, counted from 1; 0: it is over
};

}  // namespace penstock::conn
