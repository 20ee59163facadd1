// The answer to a list, decoded while it arrives: each item is framed, decoded and forgotten as soon as it is complete, so that a page of
// 50 MB costs the memory of one item and of what is kept of the others. Pure; one thread.
//
// What is not an item is collected as the page's envelope, in which {} stands for each of them:
//
//     {"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[{},{},{}]}
//
// That is JSON exactly where the page is, so the parser that reads it at the end checks the commas and brackets between the items too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/kube/decode.hpp"
#include "control/kube/json_scanner.hpp"
#include "control/kube/json_stream.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

class ListReader {
 public:
    // `decoder` outlives this, and may be used for other things between the calls.
    ListReader(Decoder& decoder, ObjectKind kind, size_t item_bytes_max = kJsonValueBytesMax)
        : decoder_(&decoder), kind_(kind), item_bytes_max_(item_bytes_max) {}

    // The next bytes of the body, cut anywhere. After an error the reader is of no use, and says so again at each call.
    [[nodiscard]] Status push(std::string_view bytes);
    // The body has ended: the page, or what was wrong with it. Once.
    [[nodiscard]] Result<ListPage> finish();

 private:
    Status broken(Error error);
    [[nodiscard]] size_t push_envelope(std::string_view bytes);
    void envelope_byte(char c);
    void end_item();

    Decoder* decoder_;
    ObjectKind kind_;
    size_t item_bytes_max_;
    ListPage page_;
    std::optional<Error> error_;

    JsonScanner scanner_;
    std::string item_;  // what is there of the item that has begun; keeps its memory

    std::string envelope_;
    uint32_t depth_ = 0;  // in the envelope
    bool in_string_ = false;
    bool escaped_ = false;
    bool in_items_ = false;   // at depth 2: in the list of items
    bool has_items_ = false;  // the key was there, be it null
    std::string string_;      // the envelope's last string at depth 1, as written
    std::string key_;         // the field at depth 1 whose value is being read
};

}  // namespace penstock::kube
