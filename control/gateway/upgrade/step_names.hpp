// SPDX-License-Identifier: Apache-2.0
// Names of the steps of an upgrade, as its record has them (v1::UpgradeStep), in their usual order.
#pragma once

namespace penstock::gateway::step {

// The successor prepares while the former process forwards.
inline constexpr const char* kSuccessorStarted = "successor started";
inline constexpr const char* kTablesOpened = "table file created";
inline constexpr const char* kEalStarted = "EAL started";
inline constexpr const char* kTwinsRead = "routes read";
inline constexpr const char* kCompiled = "configuration compiled";
inline constexpr const char* kPortsProbed = "ports probed";  // in the pause if two processes cannot have them
inline constexpr const char* kPortsOpened = "ports opened";  // likewise
inline constexpr const char* kPortsStarted = "ports started";        // likewise
inline constexpr const char* kWorkersPrepared = "workers prepared";  // likewise
inline constexpr const char* kPrepared = "prepared";
// The former process hands over.
inline constexpr const char* kAskedToHandOver = "asked to hand over";
inline constexpr const char* kCallsEnded = "API calls ended";
inline constexpr const char* kWorkersStopped = "workers stopped";  // the pause begins
inline constexpr const char* kPortsClosed = "ports closed";        // if two processes cannot have them
inline constexpr const char* kHandedOver = "handed over";
inline constexpr const char* kFormerEnded = "former process ended";  // by itself
// The successor takes over.
inline constexpr const char* kTookOver = "taken over";
inline constexpr const char* kLocked = "locked";
inline constexpr const char* kRefreshed = "state compared";
inline constexpr const char* kNamesTranslated = "names translated";
inline constexpr const char* kAdopted = "connections adopted";
inline constexpr const char* kInForce = "table file in force";
inline constexpr const char* kForwards = "forwards";  // the pause ends
inline constexpr const char* kTwinsServed = "twins served";
inline constexpr const char* kServes = "API served";

}  // namespace penstock::gateway::step
