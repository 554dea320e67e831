// SPDX-License-Identifier: Apache-2.0
// durable_range: the range in which the end of the durable records lies, from
// the reports of all replicas that were reached.
//
// Idea: only a primary knows what is durable; a reader gathers evidence. Proven
// records give a lower bound. The upper bound is what could have been
// acknowledged without a proof that this reader sees. The two are equal when a
// log is idle, or closed, and all replicas are reached.
//
// Invariants:
//   DR1. `known` is durable: no opening drops it, whatever becomes of the
//        primary. Only these are proofs:
//          a. the durable-LSN field of a header, and the head: a primary knew
//             that W replicas had persisted that much (P-A1, P-L10). Once
//             durable is always durable (P-C1), in every epoch;
//          b. W replicas of the newest epoch, none of them repairing or
//             damaged, that each prove that *they* persisted it. The proof is
//             their watermark (WMK1), or that it lies before the start of their
//             epoch (P-A4.5).
//        These are none:
//          c. one watermark: a backup stores it after its own ack, whichever
//             others have acknowledged;
//          d. one epoch start: an opening may have died after its first
//             installation;
//          e. records that are there and not fenced: a power cut may take them
//             from all replicas at once.
//   DR2. Nothing above `possible` was acknowledged when the reading began. Each
//        acknowledged record was on W replicas of the newest epoch. At most u
//        of them were not reached or can't tell, so W - u of the others have
//        it. Replicas of an older epoch are not among the W. With u < W no
//        newer epoch has acknowledged anything either: W replicas would have
//        installed it.
//        Example: N = 3, W = 2. One replica ends at 9, one at 7, one is not
//        reached (u = 1). One of the two must have each acknowledged record:
//        `possible` is 9.
// Thread safety: pure.
// References: protocol P-A1, P-A3.3, P-A3.5, P-A4.4, P-A4.5; P-C1, P-C4.
#ifndef ALPHEUS_RECOVERY_FOLLOW_DURABLE_RANGE_H_
#define ALPHEUS_RECOVERY_FOLLOW_DURABLE_RANGE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "log/base/ids.h"

namespace alpheus::recovery {

// The evidence of one reached replica.
struct ReplicaEvidence {
  Epoch log_epoch;
  Lsn start_lsn{1};    // of that epoch
  bool counts = true;  // neither repairing nor damaged
  Lsn watermark_lsn;   // of that epoch
  Lsn named_lsn;       // durable by its head, and its headers if read
  // LSN of the last whole record; nothing if records were not read.
  std::optional<Lsn> end_lsn;
};

struct DurableRange {
  Lsn known;
  std::optional<Lsn> possible;  // empty: no bound
  // u of DR2: replicas that said nothing of the newest epoch, and may have it.
  uint32_t unheard = 0;
};

// Returns the range. `replicas` has one entry for each member of the
// configuration, empty for one that was not reached.
DurableRange FindDurableRange(
    uint32_t write_quorum,
    const std::vector<std::optional<ReplicaEvidence>>& replicas);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_FOLLOW_DURABLE_RANGE_H_
