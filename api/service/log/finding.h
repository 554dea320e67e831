// SPDX-License-Identifier: Apache-2.0
// finding: what a log found of a request (service_log.h).
#ifndef ALPHEUS_API_SERVICE_LOG_FINDING_H_
#define ALPHEUS_API_SERVICE_LOG_FINDING_H_

#include <array>
#include <cstddef>
#include <string_view>

namespace alpheus::service {

enum class Finding {
  kAppended,       // it has a record now
  kRepeated,       // it had one already
  kNever,          // it has none, and never will have one
  kSuperseded,     // its client has resumed since; nothing was written
  kTailMismatch,   // a condition does not hold; nothing was written
  kOutOfOrder,     // a request before it is missing; nothing was written
  kTooMany,        // too many are unanswered; nothing was written
  kTooLarge,       // fits into no record; nothing was written
  kNoRoom,         // to be sent again later; nothing was written
  kHeldUp,         // the log would have waited; nothing was written
  kTooExposed,     // more would be exposed than it allows; nothing was written
  kTooFast,        // its caller's rate is used up; nothing was written
  kUnknownClient,  // not opened, or ended long ago; nothing was written
  kClosed,         // the client has ended; nothing was written
  kWrongEpoch,     // meant for another opening; nothing was written here
  kImpossible,     // no client numbers its requests so; nothing was written
  kFailed,         // the log has failed; nothing was written here
};
inline constexpr size_t kFindingCount = 17;

// Returns, for instance, "tail_mismatch".
constexpr std::string_view NameOf(Finding finding) {
  constexpr std::array<std::string_view, kFindingCount> kNames = {
      "appended",       "repeated",     "never",       "superseded",
      "tail_mismatch",  "out_of_order", "too_many",    "too_large",
      "no_room",        "held_up",      "too_exposed", "too_fast",
      "unknown_client", "closed",       "wrong_epoch", "impossible",
      "failed"};
  return kNames[static_cast<size_t>(finding)];
}

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_LOG_FINDING_H_
