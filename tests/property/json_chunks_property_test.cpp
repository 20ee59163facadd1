// SPDX-License-Identifier: Apache-2.0
// Random lists and streams of objects in random chunks: the decoded objects equal the written ones, whatever
// the chunk boundaries (APISYNC-008).
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "control/kube/decode.hpp"
#include "control/kube/json/json_stream.hpp"
#include "control/kube/list_reader.hpp"
#include "tests/support/prng.hpp"

namespace penstock::kube {
namespace json_chunks_property_test {

using penstock::test::Prng;

constexpr int kInputs = 2'000;

// A name, and its spelling in JSON: brackets, quotes, escapes and characters of two to four bytes, so that
// chunk boundaries fall into each of them.
struct Written {
    std::string name;
    std::string json;
};

Written random_name(Prng& prng) {
    struct Piece {
        const char* text;
        std::vector<const char*> spellings;
    };
    static const std::vector<Piece> kPieces = {{"a", {"a", "\\u0061"}},
                                               {"}", {"}"}},
                                               {"[", {"["}},
                                               {"\"", {"\\\"", "\\u0022"}},
                                               {"\\", {"\\\\"}},
                                               {"\n", {"\\n"}},
                                               {"\xc3\xa9", {"\xc3\xa9", "\\u00e9"}},
                                               {"\xe2\x82\xac", {"\xe2\x82\xac", "\\u20AC"}},
                                               {"\xf0\x9f\x9a\xb0", {"\xf0\x9f\x9a\xb0", "\\ud83d\\udeb0"}}};
    Written written;
    for (uint64_t i = prng.between(1, 6); i > 0; --i) {
        const Piece& piece = kPieces[prng.below(kPieces.size())];
        written.name += piece.text;
        written.json += piece.spellings[prng.below(piece.spellings.size())];
    }
    return written;
}

std::string space(Prng& prng) {
    static const std::vector<const char*> kSpaces = {"", "", "", " ", "\n", "\r\n\t"};
    return kSpaces[prng.below(kSpaces.size())];
}

template <typename Push>
void in_random_chunks(Prng& prng, std::string_view text, const Push& push) {
    const uint64_t longest = prng.one_in(3) ? 1 : prng.between(2, 60);
    while (!text.empty()) {
        const std::string chunk(text.substr(0, prng.below(longest + 1)));  // may be empty
        push(std::string_view(chunk));
        text.remove_prefix(chunk.size());
    }
}

TEST(JsonChunks, AStreamIsWhatWasWritten_APISYNC008) {
    Prng prng;
    for (int input = 0; input < kInputs; ++input) {
        std::string text;
        std::vector<std::string> expected;
        for (uint64_t i = prng.below(5); i > 0; --i) {
            const Written written = random_name(prng);
            expected.push_back(written.name);
            text += space(prng) + R"({"type":"ADDED",)" + space(prng) + R"("object":{"metadata":{"name":")" +
                    written.json + "\"}}" + space(prng) + "}" + space(prng);
        }
        std::vector<std::string> names;
        Decoder decoder;
        JsonStream stream;
        in_random_chunks(prng, text, [&](std::string_view chunk) {
            const Status pushed = stream.push(chunk, [&](std::string_view json) -> Status {
                names.push_back(
                    decode_watch_event(decoder, ObjectKind::Node, json).value().object.value().id.name.name);
                return {};
            });
            ASSERT_TRUE(pushed.has_value()) << pushed.error().what;
        });
        ASSERT_TRUE(stream.finish().has_value());
        ASSERT_EQ(names, expected) << text;
    }
}

TEST(JsonChunks, AListIsWhatWasWritten_APISYNC008) {
    Prng prng;
    for (int input = 0; input < kInputs; ++input) {
        std::vector<std::string> expected;
        std::string items;
        for (uint64_t i = prng.below(5); i > 0; --i) {
            const Written written = random_name(prng);
            expected.push_back(written.name);
            items += (items.empty() ? "" : ",") + space(prng) + R"({"metadata":{"name":")" + written.json +
                     "\"}}" + space(prng);
        }
        const Written token = random_name(prng);
        const std::string metadata = R"("metadata":{"continue":")" + token.json + "\"}";
        const std::string list = R"("items":)" + space(prng) + "[" + items + "]";
        const std::string text = "{" + (prng.one_in(2) ? metadata + "," + list : list + "," + metadata) +
                                 space(prng) + "}" + space(prng);
        Decoder decoder;
        ListReader reader(decoder, ObjectKind::Node);
        in_random_chunks(
            prng, text, [&](std::string_view chunk) { ASSERT_TRUE(reader.push(chunk).has_value()) << text; });
        const auto page = reader.finish();
        ASSERT_TRUE(page.has_value()) << page.error().what << "\n" << text;
        std::vector<std::string> names;
        for (const DecodedObject& item : page->items) {
            names.push_back(item.id.name.name);
        }
        ASSERT_EQ(names, expected) << text;
        ASSERT_EQ(page->continue_token, token.name);
    }
}

}  // namespace json_chunks_property_test
}  // namespace penstock::kube
