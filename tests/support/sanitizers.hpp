// Which sanitizers the test is built with, and what they cannot judge. That is skipped under them by name, never suppressed: a suppression
// would hide our own faults as well.
#pragma once

// Macros, because some tests have no code at all for what a sanitizer cannot judge. GCC says it by macros, clang by features.
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
