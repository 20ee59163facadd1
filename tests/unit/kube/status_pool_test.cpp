// SPDX-License-Identifier: Apache-2.0
// The status of AddressPools.
#include <gtest/gtest.h>

#include <map>

#include "control/kube/status/pool_status_writer.hpp"
#include "tests/unit/kube/api_text.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::kube {
namespace status_pool_test {

using namespace std::chrono_literals;

Condition accepted(const std::string& status = "True") {
    return {"Accepted", status, status == "True" ? "Valid" : "Overlap", "text"};
}
PoolStatus status_with(uint64_t used) {
    return {.ipv4 = {.total = 256, .used = used, .free = 256 - used},
            .ipv6 = {},
            .conditions = {accepted()},
            .observed_generation = 2};
}

class PoolStatusWriterTest : public testing::Test {
 protected:
    // The store has this version of the pool.
    void store(const std::string& name, int version, const std::string& uid = "uid-1") {
        AddressPool pool;
        pool.meta.name = name;
        pool.meta.uid = uid;
        store_.insert_or_assign(
            name, PoolVersion{std::make_shared<const AddressPool>(std::move(pool)), std::to_string(version)});
        writer_.object_changed(name);
    }
    void advance(std::chrono::milliseconds by = 0ms) {
        now_ += by;
        writer_.advance(now_, WallTime(1'700'000'000s) + (now_ - start_));
    }
    void respond(int version) {
        transport_.answer(200, R"({"kind":"AddressPool","metadata":{"name":"office","resourceVersion":")" +
                                   std::to_string(version) + R"("},"spec":{"addresses":["192.0.2.0/24"]}})");
        advance();
    }
    [[nodiscard]] const std::string& last_body() const { return transport_.started.back().body; }
    [[nodiscard]] size_t started() const { return transport_.started.size(); }

    const std::chrono::steady_clock::time_point start_{1h};
    std::chrono::steady_clock::time_point now_ = start_;
    std::map<std::string, PoolVersion> store_;
    bool is_leader_ = true;
    test::FakeTransport transport_;
    WriteLimiter limiter_;
    PoolStatusWriter writer_{transport_,
                             limiter_,
                             {.read = [this](const std::string& name) -> std::optional<PoolVersion> {
                                  const auto found = store_.find(name);
                                  return found == store_.end() ? std::nullopt : std::optional(found->second);
                              },
                              .may_write = [this] { return is_leader_; }},
                             [] { return 0.5; }};
};

TEST_F(PoolStatusWriterTest, TheWholePatch_STATUS001) {
    store("office", 5);
    PoolStatus status = status_with(3);
    status.ipv6 = {.total = UINT64_MAX, .used = 1, .free = uint64_t{1} << 63};  // the maximum of the schema
    writer_.set("office", status);
    advance();
    ASSERT_EQ(started(), 1u);
    const Request& request = transport_.started[0];
    EXPECT_EQ(request.method, "PATCH");
    EXPECT_EQ(request.target, "/apis/penstock.io/v1alpha1/addresspools/office/status");
    EXPECT_EQ(request.content_type, "application/merge-patch+json");
    EXPECT_EQ(request.body,
              R"({"metadata":{"resourceVersion":"5"},"status":{"ipv4":{"total":256,"used":3,"free":253},)"
              R"("ipv6":{"total":9223372036854775807,"used":1,"free":9223372036854775807},)"
              R"("conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":"text",)"
              R"("lastTransitionTime":"2023-11-14T22:13:20Z","observedGeneration":2}]}})");
    respond(6);
    EXPECT_EQ(writer_.counts(), (WriteCounts{.written = 1}));
}

TEST_F(PoolStatusWriterTest, EqualStatusIsWrittenOncePerLeadership_STATUS004) {
    store("office", 5);
    writer_.set("office", status_with(3));
    advance();
    respond(6);
    writer_.set("office", status_with(3));
    store("office", 6);
    advance(1h);
    EXPECT_EQ(started(), 1u);
    EXPECT_EQ(writer_.next_wake(), std::nullopt);
    is_leader_ = false;
    advance();
    advance(1h);
    EXPECT_EQ(started(), 1u);
    is_leader_ = true;
    advance();
    EXPECT_EQ(started(), 2u) << "another leader may have written";
    respond(9);
    advance(1h);
    EXPECT_EQ(started(), 2u);
}

TEST_F(PoolStatusWriterTest, CountsAreWrittenAtTheirInterval) {
    store("office", 5);
    writer_.set("office", status_with(1));
    advance();
    respond(6);
    for (uint64_t used = 2; used < 50; ++used) {
        writer_.set("office", status_with(used));
        advance(100ms);
    }
    EXPECT_EQ(started(), 1u);
    ASSERT_TRUE(writer_.next_wake());
    EXPECT_EQ(*writer_.next_wake(), start_ + kPoolCountsInterval);
    advance(200ms);
    ASSERT_EQ(started(), 2u);
    EXPECT_NE(last_body().find(R"("used":49)"), std::string::npos) << last_body();
    EXPECT_NE(last_body().find(R"({"resourceVersion":"6"})"), std::string::npos)
        << "the store is behind the last write: " << last_body();
    respond(7);
    // A condition is written at once. Its time of transition is now.
    PoolStatus refused = status_with(49);
    refused.conditions = {accepted("False")};
    writer_.set("office", refused);
    advance();
    ASSERT_EQ(started(), 3u);
    EXPECT_NE(last_body().find("22:13:25Z"), std::string::npos) << last_body();
    respond(8);
    refused.conditions[0].message = "another text";
    writer_.set("office", refused);
    advance(1h);
    ASSERT_EQ(started(), 4u);
    EXPECT_NE(last_body().find("22:13:25Z"), std::string::npos) << "the status is the same: " << last_body();
}

TEST_F(PoolStatusWriterTest, RefusedWrites_STATUS002) {
    struct Case {
        int status;
        WriteCounts counts;
        bool is_retried;
    };
    const std::vector<Case> cases = {
        {404, {.gone = 1}, false},
        {422, {.rejected = 1}, false},
        {409, {.conflicts = 1, .pending = 1}, true},
        {403, {.forbidden = 1, .pending = 1}, true},
        {500, {.failed = 1, .pending = 1}, true},
    };
    for (const Case& each : cases) {
        SCOPED_TRACE(each.status);
        WriteLimiter limiter;
        const std::string name = "pool-" + std::to_string(each.status);
        PoolStatusWriter writer(transport_, limiter,
                                {.read = [this](const std::string& pool) -> std::optional<PoolVersion> {
                                     return store_.at(pool);
                                 },
                                 .may_write = [] { return true; }},
                                [] { return 0.5; });
        store(name, 5);
        writer.set(name, status_with(1));
        writer.advance(now_, {});
        ASSERT_EQ(transport_.open.size(), 1u);
        transport_.answer(each.status, test::status_text(each.status, "Any", "why"));
        writer.advance(now_, {});
        EXPECT_EQ(writer.counts(), each.counts);
        writer.advance(now_ + 1h, {});
        EXPECT_EQ(transport_.open.size(), each.is_retried ? 1u : 0u);
        store(name, 6);
        writer.object_changed(name);
        writer.advance(now_ + 2h, {});
        ASSERT_EQ(transport_.open.size(), 1u) << "the pool has changed";
    }
}

TEST_F(PoolStatusWriterTest, ADeletedPoolIsForgotten) {
    store("office", 5);
    writer_.set("office", status_with(1));
    advance();
    writer_.forget("office");  // during the write
    respond(6);
    advance(1h);
    EXPECT_EQ(started(), 1u);
    EXPECT_EQ(writer_.counts().pending, 0u);
    // Another pool of the same name has no status yet.
    writer_.set("office", status_with(1));
    advance();
    respond(7);
    EXPECT_EQ(started(), 2u);
    store("office", 20, "uid-2");
    advance();
    EXPECT_EQ(started(), 3u);
    EXPECT_NE(last_body().find(R"({"resourceVersion":"20"})"), std::string::npos) << last_body();
}

TEST_F(PoolStatusWriterTest, AFollowerWritesNothing) {
    is_leader_ = false;
    store("office", 5);
    writer_.set("office", status_with(1));
    advance();
    advance(1h);
    EXPECT_EQ(started(), 0u);
    is_leader_ = true;
    advance();
    EXPECT_EQ(started(), 1u);
    is_leader_ = false;
    advance();
    EXPECT_TRUE(transport_.open.empty());
    EXPECT_EQ(writer_.counts().cancelled, 1u);
}

TEST_F(PoolStatusWriterTest, AnUnknownPoolIsWrittenOnceItIsThere) {
    writer_.set("office", status_with(1));
    advance(1h);
    EXPECT_EQ(started(), 0u);
    store("office", 5);
    advance();
    EXPECT_EQ(started(), 1u);
}

}  // namespace status_pool_test
}  // namespace penstock::kube
