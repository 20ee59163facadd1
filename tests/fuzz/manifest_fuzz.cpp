// SPDX-License-Identifier: Apache-2.0
// Any text as a manifest file. Decoding terminates, stays within its limits, and the result satisfies its
// invariants. The result for a document does not depend on the documents that follow (GEN-001).
#include <string>
#include <string_view>

#include "control/manifest/decode.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::manifest {
namespace {

// Small enough that an input of a few hundred bytes can reach each of them.
constexpr DecodeLimits kLimits{
    .file_bytes_max = 4096, .documents_max = 16, .tree = {.depth_max = 12, .values_max = 512}};

void check_promises(const DecodedFile& file) {
    size_t quarantined = 0;
    for (const DecodedObject& found : file.objects) {
        PENSTOCK_CHECK(!found.id.name.name.empty());
        PENSTOCK_CHECK(kube::is_cluster_scoped(found.id.kind) == found.id.name.namespace_name.empty());
        PENSTOCK_CHECK(found.line >= 1);
        quarantined += found.object ? 0 : 1;
        if (found.object) {
            const ObjectKind held[] = {ObjectKind::Service, ObjectKind::EndpointSlice, ObjectKind::Node,
                                       ObjectKind::AddressPool, ObjectKind::Namespace};
            PENSTOCK_CHECK(held[found.object->index()] == found.id.kind);
        }
    }
    // Every quarantined object has a problem report.
    PENSTOCK_CHECK(quarantined <= file.problems.size());
    PENSTOCK_CHECK(!file.has_unidentified || !file.problems.empty());
    for (const Problem& problem : file.problems) {
        PENSTOCK_CHECK(!problem.rule.empty() && problem.file == "f");
    }
}

void check_isolation(std::string_view text, const DecodedFile& alone) {
    constexpr std::string_view kNeighbour =
        "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: the-neighbour}\n";
    if (alone.has_unidentified && alone.objects.empty() && alone.problems.front().line == 0) {
        return;  // rejected as a whole: too large, too many documents
    }
    DecodeLimits roomier = kLimits;
    roomier.file_bytes_max += kNeighbour.size();
    roomier.documents_max += 1;
    const DecodedFile together = decode(std::string(text) + std::string(kNeighbour), "f", roomier);
    PENSTOCK_CHECK(together.objects.size() == alone.objects.size() + 1);
    PENSTOCK_CHECK(together.objects.back().object.has_value());
    PENSTOCK_CHECK(together.problems.size() == alone.problems.size());
    for (size_t i = 0; i < alone.objects.size(); ++i) {
        PENSTOCK_CHECK(together.objects[i].id == alone.objects[i].id);
        PENSTOCK_CHECK(together.objects[i].object == alone.objects[i].object);
    }
}

}  // namespace
}  // namespace penstock::manifest

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock::manifest;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const DecodedFile file = decode(text, "f", kLimits);
    check_promises(file);
    check_isolation(text, file);
    return 0;
}
