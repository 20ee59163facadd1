// JSON of an API server -> objects, watch events, list pages, errors. Pure; a Decoder belongs to one thread.
//
// Each object stands alone (GEN-001). One that breaks a rule is *quarantined* (GEN-003): it comes out by name, without a value and with
// what is wrong, and the reader keeps the last good one. Text that is no JSON at all is an error of the stream or page that it came in
// (APISYNC-007).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/kube/api_status.hpp"
#include "control/kube/changes.hpp"
#include "control/kube/object_id.hpp"
#include "control/kube/objects.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Endpoints of the core group become slices, one for each of their subsets and address families (EP-015): an object's old slices may be
// more than its new ones, so a reader remembers their names (they stand in `meta`) and withdraws what is gone. The alternatives stand in
// the order of ObjectKind.
using Object = std::variant<ServicePtr, EndpointSlicePtr, std::vector<EndpointSlicePtr>, NodePtr>;

struct DecodedObject {
    ObjectId id;
    std::string resource_version;  // "" where absent
    std::optional<Object> object;  // nullopt: quarantined. Pointers in it are never null.
    std::vector<std::string>
        faults;  // "spec.ports[0].port is a string ("80"), must be an integer (GEN-003)"; empty unless quarantined
};

struct WatchEvent {
    enum class Type : uint8_t { Added, Modified, Deleted, Bookmark, Error, Unknown };
    Type type = Type::Unknown;
    std::string type_text;  // as written
    std::string
        resource_version;  // of the event's object, also where that is quarantined; "" where absent (and for Error)
    bool initial_events_end = false;  // Bookmark: the streamed list is complete (APISYNC-011)
    ApiStatus status;                 // Error
    std::optional<DecodedObject>
        object;  // Added, Modified, Deleted; nullopt there: no name could be read, `faults` says why
    std::vector<std::string> faults;  // of an object that could not be identified
};

struct ListPage {
    std::string resource_version;
    std::string continue_token;  // "": the last page
    std::optional<int64_t> remaining;
    std::vector<DecodedObject> items;
    // Items that could not be identified: "items[3]: Service has no metadata.name". They may be objects that were there before.
    std::vector<std::string> faults;
};

class JsonTree;

// Holds the parser and its buffers, which are reused: one for each thread that decodes.
class Decoder {
 public:
    Decoder();
    ~Decoder();
    Decoder(Decoder&&) noexcept;
    Decoder& operator=(Decoder&&) noexcept;
    [[nodiscard]] JsonTree& tree() noexcept { return *tree_; }

 private:
    std::unique_ptr<JsonTree> tree_;
};

// `kind` is what the collection that is watched holds. An error: the text is not a watch event.
[[nodiscard]] Result<WatchEvent> decode_watch_event(Decoder& decoder, ObjectKind kind, std::string_view json);

// A whole answer to a list. Items need not say what kind they are.
[[nodiscard]] Result<ListPage> decode_list_page(Decoder& decoder, ObjectKind kind, std::string_view json);

// One object by itself, as the answer to a GET has it. An error: it has no name.
[[nodiscard]] Result<DecodedObject> decode_object(Decoder& decoder, ObjectKind kind, std::string_view json);

// The body of an answer of 400 and above, where it is a metav1.Status; proxies answer with other things.
[[nodiscard]] Result<ApiStatus> decode_status(Decoder& decoder, std::string_view json);

}  // namespace penstock::kube
