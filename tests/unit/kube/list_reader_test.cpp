// SPDX-License-Identifier: Apache-2.0
#include "control/kube/list_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::kube {
namespace list_reader_test {

Result<ListPage> read(std::string_view text, size_t chunk = ~size_t{0},
                      size_t item_bytes_max = kJsonValueBytesMax) {
    Decoder decoder;
    ListReader reader(decoder, ObjectKind::Node, item_bytes_max);
    for (size_t at = 0; at < text.size(); at += std::min(chunk, text.size() - at)) {
        if (const Status pushed = reader.push(text.substr(at, chunk)); !pushed) {
            EXPECT_EQ(reader.finish().error().what, pushed.error().what);
            return std::unexpected(pushed.error());
        }
    }
    return reader.finish();
}

// "Node a", "Node b!" if quarantined, then the faults.
std::vector<std::string> shown(const ListPage& page) {
    std::vector<std::string> lines;
    for (const DecodedObject& item : page.items) {
        lines.push_back(item.id.to_string() + (item.object ? "" : "!"));
    }
    lines.insert(lines.end(), page.faults.begin(), page.faults.end());
    return lines;
}

using Lines = std::vector<std::string>;

TEST(ListReader, ReadsAPageAndWhatFollowsIt_APISYNC002) {
    const auto page = read(
        R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"10","continue":"abc","remainingItemCount":3},)"
        R"("items":[{"metadata":{"name":"a","resourceVersion":"4"}}, {"metadata":{"name":"b"}}]})");
    ASSERT_TRUE(page.has_value());
    EXPECT_EQ(page->resource_version, "10");
    EXPECT_EQ(page->continue_token, "abc");
    EXPECT_EQ(page->remaining, 3);
    EXPECT_EQ(shown(*page), (Lines{"Node a", "Node b"}));
    EXPECT_EQ(page->items[0].resource_version, "4");
}

TEST(ListReader, TheLastPageIsSmall_APISYNC002) {
    for (const char* text :
         {R"({"kind":"NodeList","metadata":{"resourceVersion":"10"},"items":[]})",
          R"({"kind":"NodeList","metadata":{"resourceVersion":"10","continue":""},"items":null})",
          R"({"kind":"NodeList","metadata":{"resourceVersion":"10"}})"}) {
        const auto page = read(text);
        ASSERT_TRUE(page.has_value()) << text;
        EXPECT_EQ(page->continue_token, "");
        EXPECT_EQ(page->remaining, std::nullopt);
        EXPECT_EQ(shown(*page), Lines());
    }
}

TEST(ListReader, KeysMayComeInAnyOrderAndNested_APISYNC008) {
    const auto page = read(
        R"({"odd":{"items":[{"no":1}]},"odder":[{"x":[{}]}],"items" : [{"metadata":{"name":"a"},"items":[{"metadata":{}}]}],)"
        R"("note":"items","metadata":{"resourceVersion":"10"}})");
    ASSERT_TRUE(page.has_value());
    EXPECT_EQ(shown(*page), Lines{"Node a"});
    EXPECT_EQ(page->resource_version, "10");
}

TEST(ListReader, OneBadItemCostsItself_GEN001) {
    const auto page = read(
        R"({"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{"unschedulable":"no"}},{"metadata":{}},)"
        R"({"metadata":{"name":"\x"}},{"metadata":{"name":"c"}}]})");
    ASSERT_TRUE(page.has_value());
    const Lines lines = shown(*page);
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_EQ(Lines(lines.begin(), lines.begin() + 4),
              (Lines{"Node a", "Node b!", "Node c", "items[2]: Node has no metadata.name"}));
    EXPECT_TRUE(lines[4].starts_with("items[3]: not a JSON object: ")) << lines[4];
    EXPECT_EQ(page->items[1].faults,
              Lines{R"(spec.unschedulable is a string ("no"), must be a boolean (GEN-003))"});
}

TEST(ListReader, ItemsGivenTwiceAreTheLast_APISYNC017) {
    EXPECT_EQ(
        shown(
            read(R"({"items":[{"metadata":{"name":"a"}},{}],"items":[{"metadata":{"name":"b"}}]})").value()),
        Lines{"Node b"});
    EXPECT_EQ(shown(read(R"({"items":[{"metadata":{"name":"a"}}],"items":null})").value()), Lines());
}

TEST(ListReader, AnyCutGivesTheSame_APISYNC008) {
    const std::string text =
        R"({"kind":"NodeList","metadata":{"resourceVersion":"1\u0030","continue":"}]\"{"},"items":[{"metadata":{"name":"caf)"
        "\xc3\xa9"
        R"("}} ,{"metadata":{"name":"b","labels":{"x":"}\\\""}}}],"tail":[[],"]"]})";
    const auto whole = read(text);
    ASSERT_TRUE(whole.has_value()) << whole.error().what;
    EXPECT_EQ(shown(*whole), (Lines{"Node caf\xc3\xa9", "Node b"}));
    for (size_t chunk = 1; chunk <= text.size(); ++chunk) {
        const auto cut = read(text, chunk);
        ASSERT_TRUE(cut.has_value()) << chunk;
        EXPECT_EQ(shown(*cut), shown(*whole)) << chunk;
        EXPECT_EQ(cut->continue_token, whole->continue_token) << chunk;
        EXPECT_EQ(cut->resource_version, "10") << chunk;
    }
}

TEST(ListReader, WhatIsNoListIsAnError_APISYNC007) {
    for (const char* text : {"",
                             "<html>",
                             "[]",
                             "{}{}",
                             R"({"items":[{}{}]})",
                             R"({"items":[{},]})",
                             R"({"items":[{},,{}]})",
                             R"({"items":[,{}]})",
                             R"({"items":[{}})",
                             R"({"items":[{}]]})",
                             R"({"items":[{}])",
                             R"({"items":[{"a":1)",
                             R"({"items":{}})",
                             R"({"items":[5]})",
                             R"({"items":[null]})",
                             R"({"items":[1{}]})",
                             R"({"items":[[{}]]})",
                             R"({"kind":"Status","code":500})",
                             R"({"kind":"PodList"})",
                             R"({})",
                             R"({"metadata":{"resourceVersion":"9"}})",
                             R"({"kind":7,"items":[]})",
                             R"({"metadata":{"resourceVersion":7},"items":[]})",
                             R"({"it\u0065ms":[{"metadata":{"name":"a"}}]})"}) {
        for (const size_t chunk : {size_t{1}, ~size_t{0}}) {
            const auto page = read(text, chunk);
            ASSERT_FALSE(page.has_value()) << text;
            EXPECT_EQ(page.error().code, Errc::Corrupt) << text;
        }
    }
}

TEST(ListReader, MemoryIsBounded_GEN009) {
    const std::string page = R"({"items":[{"metadata":{"name":"a"}}]})";
    EXPECT_TRUE(read(page, 7, 25).has_value());
    EXPECT_EQ(read(page, 7, 24).error().what, "list: an item is larger than 24 bytes (GEN-009)");
    EXPECT_EQ(read(R"({"x":")" + std::string(5'000'000, 'x') + "\"}", 65'536).error().code, Errc::Exhausted);
}

}  // namespace list_reader_test
}  // namespace penstock::kube
