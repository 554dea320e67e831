// SPDX-License-Identifier: Apache-2.0
// superline_report: what a replica's superline says to peers and readers.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_SUPERLINE_REPORT_H_
#define ALPHEUS_RECOVERY_PROTOCOL_SUPERLINE_REPORT_H_

#include <cstddef>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "log/format/superline.h"
#include "recovery/protocol/answer.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

// What a replica's superline says to who connects.
inline Welcome WelcomeOf(const Superline& superline) {
  return {superline.node, superline.incarnation, superline.ring_capacity,
          superline.promised_epoch, superline.configuration.id};
}

inline Created CreatedOf(const Superline& superline) {
  const bool is_used = superline.promised_epoch != Epoch() ||
                       superline.log_epoch != Epoch() || IsBlank(superline);
  return {superline.configuration, is_used};
}

// The same of a region that another process has, which may be writing it: one
// copy of the superline is whole. None if that can't be read, or is of another
// cluster, log or node.
std::optional<Welcome> WelcomeOfHeld(std::span<std::byte> region,
                                     Uuid cluster_id, Uuid log_id, NodeId node);

// What a replica's superline says, of itself and of its records.
Followed FollowedOf(const Superline& superline);

// The same of a region that another process has, with its watermarks, as
// WelcomeOfHeld.
std::optional<Followed> FollowedOfHeld(std::span<std::byte> region,
                                       Uuid cluster_id, Uuid log_id,
                                       NodeId node);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_PROTOCOL_SUPERLINE_REPORT_H_
