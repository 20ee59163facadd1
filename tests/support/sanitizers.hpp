// SPDX-License-Identifier: Apache-2.0
// The sanitizers that the test is built with, and the tests that they do not support. Such tests are skipped
// by name and not suppressed: a suppression would hide faults of the product too.
#pragma once

// Macros, because some tests contain no code at all for unsupported sanitizers. GCC defines macros, clang has
// features.
#if defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_UNDER_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENSTOCK_UNDER_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PENSTOCK_UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PENSTOCK_UNDER_THREAD_SANITIZER 1
#endif
#endif

namespace penstock::test {

#ifdef PENSTOCK_UNDER_ADDRESS_SANITIZER
inline constexpr bool kUnderAddressSanitizer = true;
#else
inline constexpr bool kUnderAddressSanitizer = false;
#endif
#ifdef PENSTOCK_UNDER_THREAD_SANITIZER
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif

inline constexpr const char* kGrpcHidesItsLocks =
    "gRPC, protobuf and abseil are libraries without instrumentation: TSan cannot see how they synchronise";

}  // namespace penstock::test
