// SPDX-License-Identifier: Apache-2.0
// native_sends: which of one queue pair's requests become native FLUSHes and
// atomic WRITEs, and what must wait for what because of them.
//
// Idea: a READ says something of all that its connection posted before it; a
// FLUSH only of the bytes that it names, and only where the region grants it.
// A caller's flush is of everything (fabric.h), so a FLUSH names all that was
// written since the last flush, and where it can't, a READ does it as
// ever: whatever is chosen, no flush says less than a READ did.
//
// Invariants:
//   NS1. A flush is a FLUSH only if its region grants it, and all that was
//        posted since the last flush, sends included, lies in the range that
//        the FLUSH names, at most kFlushBytesMax: who flushes line by line
//        takes that long. Otherwise it is a READ.
//   NS2. An atomic WRITE is carried out behind all that was posted before.
//        FLUSHes it is behind by itself; for a flush that is a READ it waits
//        (IBV_SEND_FENCE).
//   NS3. A write or send behind an atomic WRITE waits for it: it might pass it
//        (FB1). A flush behind it does not: nothing that is answered passes
//        another.
// Thread safety: none; the fabric's lock guards it.
// References: remote persistence taxonomy §2; InfiniBand Architecture 1.2.1,
// Annex A19; docs/design/fabric.md.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_SENDS_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_SENDS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <utility>

#include "replication/fabric/fabric.h"
#include "replication/fabric/verbs/native_operations.h"
#include "replication/fabric/verbs/options.h"
#include "replication/fabric/work_request.h"

namespace alpheus::verbs {

// Longer than what is written between two flushes as a rule, and short enough
// that an adapter that is a program has flushed it before its peer gives up.
inline constexpr uint64_t kFlushBytesMax = uint64_t{16} << 20;

// Where a connection wrote since its last flush.
class WrittenRange {
 public:
  void Add(const RemoteAddress& to, uint64_t bytes);
  // To a place that the requester does not know.
  void AddElsewhere() { is_elsewhere_ = true; }
  void Clear() { *this = {}; }
  // The range that holds `range` and all that was added, if it is in that
  // region, and not too long.
  bool Widen(RemoteAddress* range, uint64_t* bytes) const;

 private:
  RegionKey key_;  // 0: nothing was added
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  bool is_elsewhere_ = false;
};

class NativeSends {
 public:
  // `counters` must outlive it.
  NativeSends(NativeAbilities abilities, VerbsFabricCounters* counters)
      : abilities_(abilities), counters_(*counters) {}

  // Notes a request that is posted as `number`, and makes what is asked of the
  // adapter native where it may be. `oldest` has not completed, or is `number`.
  void Take(const WorkRequest& request, uint64_t number, uint64_t oldest,
            ibv_send_wr* asked, ibv_sge* own);
  // Whether some of what was taken since the last call is native.
  bool TakeChain() { return std::exchange(is_in_chain_, false); }

 private:
  void TakeAtomicWrite(const WorkRequest& request, uint64_t number,
                       uint64_t oldest, ibv_send_wr* asked, ibv_sge* own);
  void TakeFlush(const WorkRequest& request, uint64_t number,
                 ibv_send_wr* asked, ibv_sge* own);

  const NativeAbilities abilities_;
  VerbsFabricCounters& counters_;
  WrittenRange written_;
  // Numbers behind the last ones.
  uint64_t after_atomic_write_ = 0;
  uint64_t after_read_flush_ = 0;
  bool is_in_chain_ = false;
};

}  // namespace alpheus::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_SENDS_H_
