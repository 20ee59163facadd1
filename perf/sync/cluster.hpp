// SPDX-License-Identifier: Apache-2.0
// A generated cluster: a number of Services, each with one EndpointSlice, and a Node for every 110 endpoints.
// Objects are generated on request, with the metadata that a real API server sends (owner, managed fields,
// target references), because parsing these is a large part of a reader's work. Only the changes by flips are
// stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::perf {

enum class Collection : uint8_t { Services, Slices, Nodes };

class Cluster {
 public:
    Cluster(uint32_t services, uint32_t endpoints);
    // Adds one more object, unchanged; it never flips.
    void add(Collection collection, std::string object) {
        more_[static_cast<size_t>(collection)].push_back(std::move(object));
    }

    [[nodiscard]] uint32_t size(Collection collection) const noexcept;
    // One object, as JSON without line breaks.
    [[nodiscard]] std::string object(Collection collection, uint32_t index) const;
    // The collection's list without its items: the text before them, {"kind":...,"items":[, and the kind of
    // one item.
    [[nodiscard]] static const char* list_kind(Collection collection) noexcept;
    [[nodiscard]] static const char* api_version(Collection collection) noexcept;

    // The number of slices that can flip.
    [[nodiscard]] uint32_t flippable() const noexcept { return services_; }
    // Makes one endpoint of the slice unready, or ready again. The slice gets a new version.
    void flip(uint32_t slice);
    [[nodiscard]] uint64_t version() const noexcept { return version_; }

 private:
    struct Slice {
        uint32_t flips = 0;
        uint64_t version = 0;
    };
    [[nodiscard]] uint32_t numbered(Collection collection) const noexcept;
    [[nodiscard]] std::string meta(const char* namespace_name, const std::string& name,
                                   const std::string& labels, uint64_t version) const;
    [[nodiscard]] std::string service(uint32_t index) const;
    [[nodiscard]] std::string slice(uint32_t index) const;
    [[nodiscard]] std::string node(uint32_t index) const;

    uint32_t services_;
    uint32_t endpoints_;
    uint64_t version_ = 1'000'000;
    std::vector<Slice> slices_;
    std::array<std::vector<std::string>, 3> more_;  // by Collection
};

}  // namespace penstock::perf
