// SPDX-License-Identifier: Apache-2.0
// Decodes a list response as it arrives. Each item is framed, decoded and released as soon as it is complete,
// so a page of 50 MB needs only the memory of one item and of the kept parts of the others. Pure; one thread.
//
// Everything outside of the items is collected as the page's envelope, in which {} stands for each item:
//
//     {"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[{},{},{}]}
//
// The envelope is valid JSON exactly if the page is, so parsing it at the end also validates the commas and
// brackets between the items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/kube/decode.hpp"
#include "control/kube/json/json_scanner.hpp"
#include "control/kube/json/json_stream.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::kube {

class ListReader {
 public:
    // `decoder` outlives this, and may be used for other data between the calls.
    ListReader(Decoder& decoder, ObjectKind kind, size_t item_bytes_max = kJsonValueBytesMax)
        : decoder_(&decoder), kind_(kind), item_bytes_max_(item_bytes_max) {}

    // The next bytes of the body, split anywhere. After an error the reader is unusable, and every call
    // returns the error again.
    [[nodiscard]] Status push(std::string_view bytes);
    // End of the body. Returns the page, or its error. Call once.
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
    std::string item_;  // the incomplete current item; its memory is reused

    std::string envelope_;
    uint32_t depth_ = 0;  // in the envelope
    bool in_string_ = false;
    bool escaped_ = false;
    bool in_items_ = false;   // at depth 2: in the list of items
    bool has_items_ = false;  // the key was present, even if its value is null
    std::string string_;      // the envelope's last string at depth 1, as written
    std::string key_;         // the field at depth 1 whose value is being read
};

}  // namespace penstock::kube
