// SPDX-License-Identifier: Apache-2.0
// patience: how long those who run the programs wait for an event that must
// come.
#ifndef ALPHEUS_TOOLS_NEMESIS_PROCESSES_PATIENCE_H_
#define ALPHEUS_TOOLS_NEMESIS_PROCESSES_PATIENCE_H_

#include <cstdint>

namespace alpheus::demo {

// Generous: the machine may be busy with other things.
inline constexpr int64_t kPatienceNanos = 300'000'000'000;
// The same, as programs take it.
inline constexpr char kPatienceMillis[] = "300000";
inline constexpr char kPatienceSeconds[] = "300";

// Exit status of `alpheus` (tools/cli/io/exit_status.h): too few replicas, or
// the outcome is unknown.
inline constexpr int kUnavailable = 4;

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_PROCESSES_PATIENCE_H_
