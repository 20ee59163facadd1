// SPDX-License-Identifier: Apache-2.0
#include "control/kube/list_reader.hpp"

#include <utility>

#include "control/kube/json/json_fields.hpp"
#include "control/kube/json/json_tree.hpp"

namespace penstock::kube {
namespace {

// Only the strings of the envelope can be long: a continue token has some hundred bytes. An item takes three
// bytes of the envelope.
constexpr size_t kEnvelopeBytesMax = size_t{4} * 1024 * 1024;

}  // namespace

Status ListReader::broken(Error error) {
    error_ = error;
    return std::unexpected(std::move(error));
}

// Reads up to the first byte of an item, which is not consumed, or to the end.
size_t ListReader::push_envelope(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] == '{' && in_items_ && depth_ == 2 && !in_string_) {
            return i;
        }
        envelope_byte(bytes[i]);
    }
    return bytes.size();
}

void ListReader::envelope_byte(char c) {
    envelope_.push_back(c);
    if (in_string_) {
        in_string_ = escaped_ || c != '"';
        escaped_ = !escaped_ && c == '\\';
        if (in_string_ && depth_ == 1) {
            string_.push_back(c);
        }
        return;
    }
    switch (c) {
        case '"':
            in_string_ = true;
            string_.clear();
            break;
        case ':':
            if (depth_ == 1) {
                key_ = std::exchange(string_, {});
                if (key_ == "items") {  // of duplicates, the last one counts (APISYNC-017)
                    has_items_ = true;
                    page_.items.clear();
                    page_.faults.clear();
                }
            }
            break;
        case '{':
        case '[':
            ++depth_;
            in_items_ |= depth_ == 2 && c == '[' && key_ == "items";
            break;
        case '}':
        case ']':
            depth_ -= depth_ > 0 ? 1 : 0;
            in_items_ &= depth_ >= 2;
            break;
        default:
            break;
    }
}

void ListReader::end_item() {
    // An item that is not JSON, or has no name, affects only itself (GEN-001).
    if (auto decoded = decode_object(*decoder_, kind_, item_)) {
        page_.items.push_back(std::move(*decoded));
    } else {
        page_.faults.push_back("items[" + std::to_string(page_.items.size() + page_.faults.size()) +
                               "]: " + decoded.error().what);
    }
    item_.clear();
    envelope_ += "{}";
}

Status ListReader::push(std::string_view bytes) {
    if (error_) {
        return std::unexpected(*error_);
    }
    while (!bytes.empty()) {
        if (scanner_.is_between()) {
            bytes.remove_prefix(push_envelope(bytes));
            if (envelope_.size() > kEnvelopeBytesMax) {
                return broken({Errc::Exhausted, "list: more than " + std::to_string(kEnvelopeBytesMax) +
                                                    " bytes outside its items"});
            }
        }
        if (bytes.empty()) {
            break;
        }
        // Scans at most to the limit, as in JsonStream.
        const size_t taken = scanner_.scan(bytes.substr(0, item_bytes_max_ - item_.size() + 1));
        item_.append(bytes, 0, taken);
        bytes.remove_prefix(taken);
        if (item_.size() > item_bytes_max_) {
            return broken({Errc::Exhausted, "list: an item is larger than " +
                                                std::to_string(item_bytes_max_) + " bytes (GEN-009)"});
        }
        if (scanner_.is_between()) {
            end_item();
        }
    }
    return {};
}

Result<ListPage> ListReader::finish() {
    if (error_) {
        return std::unexpected(*error_);
    }
    if (!scanner_.is_between()) {
        return fail(Errc::Corrupt, "list: ended inside an item");
    }
    const JsonTree& tree = decoder_->tree();
    PENSTOCK_TRY_STATUS_IN("list", decoder_->tree().parse(envelope_));
    FaultList faults;
    const JsonFields fields(tree, 0, faults);
    if (const std::string_view kind = fields.text("kind");
        !kind.empty() && kind != std::string(to_string(kind_)) + "List") {
        return fail(Errc::Corrupt, "list: is a " + std::string(kind.substr(0, 80)) + ", must be a " +
                                       to_string(kind_) + "List");
    }
    // A 200 response with neither of them is not a list. Treating it as an empty list would withdraw
    // everything (APISYNC-014).
    if (fields.text("kind").empty() && !has_items_) {
        return fail(Errc::Corrupt, "list: kind and items are missing");
    }
    const JsonFields meta = fields.mapping("metadata");
    page_.resource_version = meta.text("resourceVersion");
    page_.continue_token = meta.text("continue");
    page_.remaining = meta.integer("remainingItemCount");
    // If anything other than objects is among the items, the page is not a list of objects, even if parts are
    // readable.
    size_t items = 0;
    fields.each_mapping("items", [&](const JsonFields&) { ++items; });
    if (!faults.empty()) {
        return fail(Errc::Corrupt, "list: " + faults.take().front());
    }
    // Items that were not recognized on arrival: JSON could write "items" with escapes. No server does.
    if (items != page_.items.size() + page_.faults.size()) {
        return fail(Errc::Corrupt, "list: the key of its items contains escapes");
    }
    return std::move(page_);
}

}  // namespace penstock::kube
