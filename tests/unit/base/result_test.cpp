// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/result.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <utility>

namespace penstock {
namespace result_test {

// Counts its copies; moves are free.
struct Counted {
    explicit Counted(int* copies) : copies(copies) {}
    Counted(const Counted& other) : copies(other.copies) { ++*copies; }
    Counted(Counted&&) = default;
    Counted& operator=(const Counted&) = delete;
    Counted& operator=(Counted&&) = delete;
    ~Counted() = default;
    int* copies;
};

Result<int> parsed(int number) {
    if (number < 0) {
        return fail(Errc::InvalidArgument, "number is negative");
    }
    return number;
}

Result<std::string> text_of(int number) {
    PENSTOCK_TRY(const int value, parsed(number));
    return std::to_string(value);
}

Result<int> sum(int first, int second) {
    PENSTOCK_TRY(int total, parsed(first));
    PENSTOCK_TRY(const int value, parsed(second));
    total += value;
    return total;
}

Status check(int number) {
    PENSTOCK_TRY_STATUS(parsed(number));
    return {};
}

Result<int> in_field(int number, int& contexts) {
    const auto field = [&] {
        ++contexts;
        return std::string("field");
    };
    PENSTOCK_TRY_STATUS_IN(field(), check(number == 1 ? -1 : 0));
    PENSTOCK_TRY_IN(field() + " value", int value, parsed(number));
    return value;
}

}  // namespace result_test

TEST(Try, DeclaresTheValue) {
    EXPECT_EQ(result_test::text_of(7), "7");
    EXPECT_EQ(result_test::sum(3, 4), 7);
    EXPECT_TRUE(result_test::check(0));
}

TEST(Try, ReturnsTheErrorToAnyResultType) {
    const Result<std::string> text = result_test::text_of(-1);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, Errc::InvalidArgument);
    EXPECT_EQ(text.error().what, "number is negative");
    EXPECT_FALSE(result_test::sum(3, -1));
    const Status status = result_test::check(-1);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().what, "number is negative");
}

TEST(Try, AddsTheContextOnFailureOnly) {
    int contexts = 0;
    EXPECT_EQ(result_test::in_field(2, contexts), 2);
    EXPECT_EQ(contexts, 0);
    const auto of_status = result_test::in_field(1, contexts);
    ASSERT_FALSE(of_status);
    EXPECT_EQ(of_status.error().what, "field: number is negative");
    const auto of_value = result_test::in_field(-1, contexts);
    ASSERT_FALSE(of_value);
    EXPECT_EQ(of_value.error().code, Errc::InvalidArgument);
    EXPECT_EQ(of_value.error().what, "field value: number is negative");
    EXPECT_EQ(contexts, 2);
}

TEST(Try, EvaluatesTheExpressionOnce) {
    int calls = 0;
    const auto once = [&]() -> Result<int> {
        PENSTOCK_TRY(const int value, (++calls, result_test::parsed(calls)));
        PENSTOCK_TRY_STATUS((++calls, result_test::parsed(calls)));
        return value;
    };
    EXPECT_EQ(once(), 1);
    EXPECT_EQ(calls, 2);
}

TEST(Try, MovesTheValueOfATemporary) {
    const auto moved = []() -> Result<std::unique_ptr<int>> {
        PENSTOCK_TRY(auto value, Result<std::unique_ptr<int>>(std::make_unique<int>(5)));
        return value;
    };
    const auto value = moved();
    ASSERT_TRUE(value);
    EXPECT_EQ(**value, 5);

    int copies = 0;
    const auto counted = [&]() -> Result<int> {
        PENSTOCK_TRY(const auto result, Result<result_test::Counted>(std::in_place, &copies));
        return *result.copies;
    };
    EXPECT_EQ(counted(), 0);
}

TEST(Try, MovesTheErrorOfATemporary) {
    int copies = 0;
    using Checked = std::expected<int, result_test::Counted>;
    const auto failed = [&]() -> Checked {
        PENSTOCK_TRY(const int value, Checked(std::unexpect, &copies));
        return value;
    };
    EXPECT_FALSE(failed());
    const auto failed_status = [&]() -> Checked {
        PENSTOCK_TRY_STATUS(Checked(std::unexpect, &copies));
        return 0;
    };
    EXPECT_FALSE(failed_status());
    EXPECT_EQ(copies, 0);
}

TEST(Try, LeavesAVariableUnchanged) {
    Result<std::string> kept = std::string("a text that is too long for the object itself");
    const auto size = [&]() -> Result<size_t> {
        PENSTOCK_TRY(const auto text, kept);
        return text.size();
    };
    EXPECT_EQ(size(), kept->size());
    EXPECT_FALSE(kept->empty());
}

TEST(Try, AssignsToAnExistingVariable) {
    std::string target = "before";
    const auto assign = [&](int number) -> Status {
        PENSTOCK_TRY(target, result_test::text_of(number));
        return {};
    };
    EXPECT_FALSE(assign(-1));
    EXPECT_EQ(target, "before");
    EXPECT_TRUE(assign(3));
    EXPECT_EQ(target, "3");
}

TEST(Try, TakesAnExpressionWithCommasOfTemplates) {
    const auto pair = []() -> Result<int> {
        PENSTOCK_TRY(const auto both, Result<std::pair<int, int>>(std::pair<int, int>{1, 2}));
        return both.first + both.second;
    };
    EXPECT_EQ(pair(), 3);
}

}  // namespace penstock
