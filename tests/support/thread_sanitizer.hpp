// What TSan cannot judge is skipped under it by name, never suppressed: a suppression would hide our own races as well.
#pragma once

namespace penstock::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif

inline constexpr const char* kGrpcHidesItsLocks =
    "gRPC, protobuf and abseil are libraries without instrumentation: TSan cannot see how they synchronise";

}  // namespace penstock::test
