// SPDX-License-Identifier: Apache-2.0
// durable_range: what the replicas that were reached say together about which
// records are durable.
//
// Idea: nobody but a primary knows what is durable; whoever only looks gathers
// evidence. What is proven is a lower bound; what could have been acknowledged
// without this reader seeing a proof is an upper one. The two are equal when a
// log is idle, or closed, and all replicas are reached.
//
// Invariants:
//   DR1. `known` is durable: whatever becomes of the primary, no opening drops
//        it. It follows from nothing but
//          a. the durable-LSN field of a header, and the head: somebody knew
//             that W replicas had persisted so much (P-A1, P-L10), and what was
//             durable once stays (P-C1), in whatever epoch that was;
//          b. W replicas of the newest epoch, none of them repairing or
//             damaged, that each prove that *they* persisted it: by their
//             watermark (WMK1), or because it lies before the start of their
//             epoch (P-A4.5).
//        One watermark is no proof: a backup stores it after its own ack,
//        whoever else has acknowledged. Nor is one epoch start: an opening may
//        have died after its first installation. Nor are records that are there
//        and not fenced: a power cut may take them from all replicas at once.
//   DR2. Nothing above `possible` had been acknowledged when the reading began.
//        In the newest epoch, W replicas of it had the record then. Those that
//        were not reached, or can't tell (u), may be among them, so that W - u
//        of the others have it. Replicas of an older epoch are not among them.
//        With u < W there is no newer epoch either that has acknowledged
//        anything: W replicas would have installed it.
// Thread safety: pure.
// References: protocol P-A1, P-A3.3, P-A3.5, P-A4.4, P-A4.5; P-C1, P-C4.
#ifndef ALPHEUS_RECOVERY_FOLLOW_DURABLE_RANGE_H_
#define ALPHEUS_RECOVERY_FOLLOW_DURABLE_RANGE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "log/base/ids.h"

namespace alpheus {

// Of one replica that was reached.
struct ReplicaClaims {
  Epoch log_epoch;
  Lsn start_lsn{1};    // of that epoch
  bool counts = true;  // neither repairing nor damaged
  Lsn watermark_lsn;   // of that epoch
  Lsn named_lsn;       // by its head, and its headers if they were read
  // Of the last record that is whole; nothing if records were not read.
  std::optional<Lsn> end_lsn;
};

struct DurableRange {
  Lsn known;
  std::optional<Lsn> possible;  // nothing: no bound
  // u of DR2: replicas that said nothing of the newest epoch, and may have it.
  uint32_t unheard = 0;
};

// `replicas` has one for each member of the configuration; nothing for one that
// was not reached.
DurableRange FindDurableRange(
    uint32_t write_quorum,
    const std::vector<std::optional<ReplicaClaims>>& replicas);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_FOLLOW_DURABLE_RANGE_H_
