// SPDX-License-Identifier: Apache-2.0
// superline_report: the contents of a replica's superline for peers and
// readers.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_SUPERLINE_REPORT_H_
#define ALPHEUS_RECOVERY_PROTOCOL_SUPERLINE_REPORT_H_

#include <cstddef>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "log/format/superline.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/state_report.h"

namespace alpheus::recovery {

// Returns the ServerHello of a superline.
inline ServerHello ServerHelloOf(const Superline& superline) {
  return {superline.node, superline.incarnation, superline.ring_capacity,
          superline.promised_epoch, superline.configuration.id};
}

inline Created CreatedOf(const Superline& superline) {
  const bool is_used = superline.promised_epoch != Epoch() ||
                       superline.log_epoch != Epoch() || IsBlank(superline) ||
                       superline.deletion != Deletion::kNone;
  return {superline.configuration, is_used};
}

// Returns the ServerHello of a region that another process has, and may be
// writing: one copy of the superline is whole. Nothing if that can't be read,
// or is of another cluster, log or node.
std::optional<ServerHello> ServerHelloOfClaimed(std::span<std::byte> region,
                                                Uuid cluster_id, Uuid log_id,
                                                NodeId node);

// Returns the state that a superline alone gives.
Followed FollowedOf(const Superline& superline);

// Returns the state of a region that another process has, with its watermarks;
// nothing as ServerHelloOfClaimed.
std::optional<Followed> FollowedOfClaimed(std::span<std::byte> region,
                                          Uuid cluster_id, Uuid log_id,
                                          NodeId node);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_SUPERLINE_REPORT_H_
