// SPDX-License-Identifier: Apache-2.0
// Any bytes as a watch stream and as the body of a list, in any chunks. The result does not depend on the
// chunk boundaries (APISYNC-008), and satisfies the decoder's invariants. The first byte of the input
// determines the chunks.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "control/kube/decode.hpp"
#include "control/kube/json/json_stream.hpp"
#include "control/kube/list_reader.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::kube {
namespace {

// Small enough that an input of some hundred bytes exceeds it.
constexpr size_t kValueBytesMax = 512;

// The contents of all objects, events and pages as text, for comparing two runs.
std::string shown(const std::vector<std::string>& faults) {
    std::string text;
    for (const std::string& fault : faults) {
        PENSTOCK_CHECK(!fault.empty());
        text += fault + "\n";
    }
    return text;
}

std::string shown(const DecodedObject& object) {
    PENSTOCK_CHECK(!object.id.name.name.empty());
    PENSTOCK_CHECK(object.object.has_value() == object.faults.empty());
    PENSTOCK_CHECK(!object.object || object.object->index() == static_cast<size_t>(object.id.kind));
    return object.id.to_string() + " " + object.resource_version + "\n" + shown(object.faults);
}

std::string shown(const WatchEvent& event) {
    using Type = WatchEvent::Type;
    const bool upsert =
        event.type == Type::Added || event.type == Type::Modified || event.type == Type::Deleted;
    PENSTOCK_CHECK(upsert == (event.object.has_value() || !event.faults.empty()));
    PENSTOCK_CHECK(!event.type_text.empty());
    return event.type_text + " " + event.resource_version + " " + event.status.to_string() + "\n" +
           (event.object ? shown(*event.object) : "") + shown(event.faults);
}

// Cuts `text` into pieces of 1 to 16 bytes, depending on `pattern`, or not at all for 0.
template <typename Push>
void in_pieces(std::string_view text, uint8_t pattern, const Push& push) {
    uint32_t state = pattern;
    while (!text.empty()) {
        state = state * 1'103'515'245 + 12'345;
        const size_t size =
            pattern == 0 ? text.size() : std::min<size_t>(text.size(), 1 + (state >> 16) % 16);
        // In separate memory: a sanitizer then detects views that are kept too long or read too far.
        const std::string piece(text.substr(0, size));
        if (!push(std::string_view(piece))) {
            return;
        }
        text.remove_prefix(size);
    }
}

// One decoder for all inputs, as in the product; construction costs more than most inputs.
Decoder& decoder() {
    static Decoder the_only_one;
    return the_only_one;
}

std::string run_stream(std::string_view text, uint8_t pattern) {
    JsonStream stream(kValueBytesMax);
    std::string result;
    in_pieces(text, pattern, [&](std::string_view piece) {
        return stream
            .push(piece,
                  [&](std::string_view json) -> Status {
                      PENSTOCK_CHECK(!json.empty() && json.size() <= kValueBytesMax);
                      auto event = decode_watch_event(decoder(), ObjectKind::EndpointSlice, json);
                      if (!event) {
                          return std::unexpected(event.error());
                      }
                      result += shown(*event);
                      return {};
                  })
            .has_value();
    });
    const Status end = stream.finish();
    return result + (end ? "" : end.error().what);
}

std::string run_list(std::string_view text, uint8_t pattern) {
    ListReader reader(decoder(), ObjectKind::EndpointSlice, kValueBytesMax);
    in_pieces(text, pattern, [&](std::string_view piece) { return reader.push(piece).has_value(); });
    const auto page = reader.finish();
    if (!page) {
        return page.error().what;
    }
    std::string result = page->resource_version + " " + page->continue_token + "\n" + shown(page->faults);
    for (const DecodedObject& item : page->items) {
        result += shown(item);
    }
    return result;
}

}  // namespace
}  // namespace penstock::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace penstock::kube;
    if (size == 0) {
        return 0;
    }
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    PENSTOCK_CHECK(run_stream(text, data[0]) == run_stream(text, 0));
    PENSTOCK_CHECK(run_list(text, data[0]) == run_list(text, 0));
    return 0;
}
