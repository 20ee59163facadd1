// SPDX-License-Identifier: Apache-2.0
// A versioned hash table: the control thread edits it, workers read views of it, and two views share every
// page that was not edited between them. So a change copies one or two pages and the directory of pointers,
// whatever the size of the table, and freeing the older view frees only the replaced pages. Extendible
// hashing (Fagin et al., 1979): a full page is split in two, the others never move.
//
//   hash:  [ high bits: place in the directory | bits 8..: tag | low 6 bits: first slot ]
//
//   directory  | * | * | * | * | * | ...     a page with few rows has several places in the directory
//                |   |    \ /
//              page page  page               tags[64] | rows[64], linear probing within the page,
//                                            at most kRowsMax of 64 slots in use
//
// The search for an absent key nearly always reads one line of tags; for a present key it also reads the
// row's line. The directory takes 8 bytes per page, about 15 KB for 50,000 rows, and normally stays in the
// cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"

namespace penstock::lb {

// `HashOf` returns a row's hash. All its bits must be uniform and depend on a secret: otherwise an attacker
// could choose keys that fill one page.
template <typename Row, typename HashOf>
class SharedHash {
    static constexpr uint32_t kSlots = 64;
    // Of 64 slots. Pages are between half full and full, so probes stay short: 36 means 39 % on average.
    static constexpr uint32_t kRowsMax = 36;
    // A deeper directory would only be needed with a bad hash: 2^22 places are enough for 50 million rows.
    static constexpr uint32_t kDepthMax = 22;

    struct Page {
        alignas(kCacheLine) std::array<uint32_t, kSlots> tags{};  // 0: free
        std::array<Row, kSlots> rows{};
        uint64_t edition = 0;  // of the table at the page's creation; earlier editions are shared with views
        uint32_t used = 0;
        uint32_t depth = 0;  // number of high hash bits that its rows have in common

        template <typename Matches>
        [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Row* find(uint64_t hash,
                                                             Matches&& matches) const noexcept {
            const uint32_t tag = tag_of(hash);
            for (uint32_t at = hash % kSlots;; at = (at + 1) % kSlots) {
                if (tags[at] == tag && matches(rows[at])) {
                    return &rows[at];
                }
                if (tags[at] == 0) {
                    return nullptr;
                }
            }
        }
        Row& insert(uint64_t hash, Row row) {
            uint32_t at = hash % kSlots;
            while (tags[at] != 0) {
                at = (at + 1) % kSlots;
            }
            tags[at] = tag_of(hash);
            rows[at] = std::move(row);
            ++used;
            return rows[at];
        }
    };
    struct Directory {
        std::vector<const Page*> pages;
        std::vector<std::shared_ptr<const Page>> owners;  // the same pages
    };

 public:
    // One version. Immutable; any thread.
    class View {
     public:
        View() = default;  // empty

        // `matches(row)` compares the full key. Null if no row matches.
        template <typename Matches>
        [[nodiscard]] PENSTOCK_ALWAYS_INLINE const Row* find(uint64_t hash,
                                                             Matches&& matches) const noexcept {
            return pages_[hash >> shift_]->find(hash, std::forward<Matches>(matches));
        }
        PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept {
            prefetch_read(&pages_[hash >> shift_]->tags[hash % kSlots]);
        }
        [[nodiscard]] size_t size() const noexcept { return size_; }
        template <typename Visit>
        void for_each(Visit&& visit) const {
            if (directory_ != nullptr) {
                visit_all(directory_->pages, 64 - shift_, visit);
            }
        }

     private:
        friend class SharedHash;
        // A page without rows, so that a search need not test whether there is a page.
        inline static const Page kNoRows{};
        inline static const Page* const kNoPages[2] = {&kNoRows, &kNoRows};
        const Page* const* pages_ = kNoPages;
        uint32_t shift_ = 63;
        size_t size_ = 0;
        std::shared_ptr<const Directory> directory_;
    };

    explicit SharedHash(HashOf hash_of)
        : hash_of_(std::move(hash_of)), pages_{std::make_shared<Page>(), std::make_shared<Page>()} {
        for (auto& page : pages_) {
            page->depth = 1;
        }
    }

    [[nodiscard]] size_t size() const noexcept { return size_; }
    template <typename Matches>
    [[nodiscard]] const Row* find(uint64_t hash, Matches&& matches) const noexcept {
        return pages_[place_of(hash)]->find(hash, std::forward<Matches>(matches));
    }
    // The same for writing; the hashed fields must not change.
    template <typename Matches>
    [[nodiscard]] Row* find_to_edit(uint64_t hash, Matches&& matches) {
        if (find(hash, matches) == nullptr) {
            return nullptr;
        }
        return const_cast<Row*>(own(place_of(hash)).find(hash, matches));
    }
    // Precondition: the key is absent.
    Row& insert(Row row) {
        const uint64_t hash = hash_of_(row);
        while (pages_[place_of(hash)]->used == kRowsMax) {
            split(place_of(hash));
        }
        ++size_;
        return own(place_of(hash)).insert(hash, std::move(row));
    }
    // True if the key was present.
    template <typename Matches>
    bool erase(uint64_t hash, Matches&& matches) {
        const Row* gone = find(hash, matches);
        if (gone == nullptr) {
            return false;
        }
        // Linear probing allows no hole, so the page is built anew; it would be copied anyway.
        const auto& page = pages_[place_of(hash)];
        auto next = fresh(page->depth);
        for (uint32_t at = 0; at < kSlots; ++at) {
            if (page->tags[at] != 0 && &page->rows[at] != gone) {
                next->insert(hash_of_(page->rows[at]), page->rows[at]);
            }
        }
        --size_;
        replace(place_of(hash), std::move(next));
        return true;
    }

    // The current contents for readers. Pages not edited since the last call are shared with its result.
    [[nodiscard]] View view() {
        if (is_edited_) {
            auto directory = std::make_shared<Directory>();
            directory->pages.reserve(pages_.size());
            for (const auto& page : pages_) {
                directory->pages.push_back(page.get());
            }
            directory->owners.assign(pages_.begin(), pages_.end());
            view_.pages_ = directory->pages.data();
            view_.shift_ = 64 - depth_;
            view_.size_ = size_;
            view_.directory_ = std::move(directory);
            ++edition_;
            is_edited_ = false;
        }
        return view_;
    }

 private:
    // Tag 0 means a free slot; the lowest bit of the tag is reserved for that.
    static uint32_t tag_of(uint64_t hash) noexcept { return static_cast<uint32_t>(hash >> 8) | 1; }
    [[nodiscard]] size_t place_of(uint64_t hash) const noexcept { return hash >> (64 - depth_); }

    template <typename Pages, typename Visit>
    static void visit_all(const Pages& pages, uint32_t depth, Visit& visit) {
        for (size_t place = 0; place < pages.size(); place += size_t{1} << (depth - pages[place]->depth)) {
            const Page& page = *pages[place];
            for (uint32_t at = 0; at < kSlots; ++at) {
                if (page.tags[at] != 0) {
                    visit(page.rows[at]);
                }
            }
        }
    }

    std::shared_ptr<Page> fresh(uint32_t depth) const {
        auto page = std::make_shared<Page>();
        page->edition = edition_;
        page->depth = depth;
        return page;
    }
    // The page of `place` for editing; copied first if views share it.
    Page& own(size_t place) {
        is_edited_ = true;
        if (pages_[place]->edition != edition_) {
            auto copy = std::make_shared<Page>(*pages_[place]);
            copy->edition = edition_;
            replace(place, std::move(copy));
        }
        return *pages_[place];
    }
    // All places of a page are adjacent.
    void replace(size_t place, std::shared_ptr<Page> page) {
        is_edited_ = true;
        const size_t span = size_t{1} << (depth_ - page->depth);
        const size_t first = place & ~(span - 1);
        for (size_t i = 0; i < span; ++i) {
            pages_[first + i] = page;
        }
    }
    void split(size_t place) {
        const std::shared_ptr<Page> full = pages_[place];
        if (full->depth == depth_) {
            PENSTOCK_CHECK(depth_ < kDepthMax);
            std::vector<std::shared_ptr<Page>> wider;
            wider.reserve(pages_.size() * 2);
            for (const auto& page : pages_) {
                wider.push_back(page);
                wider.push_back(page);
            }
            pages_ = std::move(wider);
            ++depth_;
            place *= 2;
        }
        const std::array halves{fresh(full->depth + 1), fresh(full->depth + 1)};
        for (uint32_t at = 0; at < kSlots; ++at) {
            if (full->tags[at] != 0) {
                const uint64_t hash = hash_of_(full->rows[at]);
                halves[(hash >> (63 - full->depth)) & 1]->insert(hash, full->rows[at]);
            }
        }
        const size_t span = size_t{1} << (depth_ - full->depth);
        const size_t first = place & ~(span - 1);
        replace(first, halves[0]);
        replace(first + span / 2, halves[1]);
    }

    HashOf hash_of_;
    std::vector<std::shared_ptr<Page>> pages_;
    uint32_t depth_ = 1;
    size_t size_ = 0;
    uint64_t edition_ = 1;
    bool is_edited_ = true;
    View view_;
};

}  // namespace penstock::lb
