// SPDX-License-Identifier: Apache-2.0
// Decodes JSON of an API server into objects, watch events, list pages and errors. Pure; a Decoder belongs to
// one thread.
//
// Each object is decoded independently (GEN-001). An object that violates a rule is *quarantined* (GEN-003):
// the result has its name and the faults but no value, and the reader keeps the last good version. Text that
// is not JSON is an error of the stream or page that contains it (APISYNC-007).
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
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

// Endpoints of the core group become EndpointSlices, one for each subset and address family (EP-015). An
// object may have had more slices before than it has now. A reader therefore keeps their names (in `meta`)
// and removes slices that are gone. The alternatives are in the order of ObjectKind.
using Object = std::variant<ServicePtr, EndpointSlicePtr, std::vector<EndpointSlicePtr>, NodePtr,
                            AddressPoolPtr, NamespacePtr>;

struct DecodedObject {
    ObjectId id;
    std::string resource_version;  // "" if absent
    std::optional<Object> object;  // nullopt: quarantined. Contained pointers are never null.
    std::vector<std::string>
        faults;  // "spec.ports[0].port is a string ("80"), must be an integer (GEN-003)"; empty: valid
    // Of a quarantined Service: the addresses in status.loadBalancer.ingress, as far as they can be read.
    std::vector<IpAddr> held_addresses;
};

struct WatchEvent {
    enum class Type : uint8_t { Added, Modified, Deleted, Bookmark, Error, Unknown };
    Type type = Type::Unknown;
    std::string type_text;         // as written
    std::string resource_version;  // of the event's object, also if quarantined; "" if absent (and for Error)
    bool initial_events_end = false;  // Bookmark: the streamed list is complete (APISYNC-011)
    ApiStatus status;                 // Error
    std::optional<DecodedObject>
        object;  // Added, Modified, Deleted; nullopt there: no readable name, `faults` has the reason
    std::vector<std::string> faults;  // of an object that could not be identified
};

struct ListPage {
    std::string resource_version;
    std::string continue_token;  // "": last page
    std::optional<int64_t> remaining;
    std::vector<DecodedObject> items;
    // Items that could not be identified: "items[3]: Service has no metadata.name". They may be objects that
    // already existed.
    std::vector<std::string> faults;
};

class JsonTree;

// Holds the parser and its buffers, which are reused: one for each decoding thread.
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

// `kind` is the kind of the watched collection. Error: the text is not a watch event.
[[nodiscard]] Result<WatchEvent> decode_watch_event(Decoder& decoder, ObjectKind kind, std::string_view json);

// One object by itself, as in the response to a GET. Error: it has no name.
[[nodiscard]] Result<DecodedObject> decode_object(Decoder& decoder, ObjectKind kind, std::string_view json);

// The body of a response of 400 and above, if it is a metav1.Status; proxies send other bodies.
[[nodiscard]] Result<ApiStatus> decode_status(Decoder& decoder, std::string_view json);

}  // namespace penstock::kube
