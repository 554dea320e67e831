// SPDX-License-Identifier: Apache-2.0
// native_sends: decides which of one queue pair's requests become native
// FLUSHes and atomic WRITEs, and what must wait because of them.
//
// Idea: a READ covers everything that its connection posted before it. A FLUSH
// covers only the bytes that it names, and only where the region grants it. A
// caller's flush covers everything (fabric.h). So a FLUSH names everything that
// was written since the last flush; where it can't, a READ is used. No flush
// ever covers less than a READ would.
//
// Invariants:
//   NS1. A flush is a FLUSH only if its region grants it, and everything posted
//        since the last flush, sends included, lies in the range that it names.
//        The range has at most kFlushBytesMax: a flush line by line takes long.
//        Otherwise it is a READ.
//   NS2. An atomic WRITE is carried out after all that was posted before. It
//        comes after FLUSHes by itself; for a flush that is a READ it waits
//        (IBV_SEND_FENCE).
//   NS3. A write or send after an atomic WRITE waits for it, as it might pass
//        it (FB1). A flush after it does not: operations with an answer do not
//        pass each other.
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

namespace alpheus::fabric::verbs {

// Most bytes of a FLUSH: longer than what is normally written between two
// flushes, and short enough that a software adapter has flushed it before its
// peer gives up.
inline constexpr uint64_t kFlushBytesMax = uint64_t{16} << 20;

// The range that a connection wrote since its last flush.
class WrittenRange {
 public:
  void Add(const RemoteAddress& to, uint64_t bytes);
  // Notes a write to a place that the requester does not know.
  void AddElsewhere() { is_elsewhere_ = true; }
  void Clear() { *this = {}; }
  // Widens `range` to all that was added. Returns false if that is in another
  // region, or too long.
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

  // Notes a request that is posted as `number`, and makes `asked` native where
  // it may be. `oldest` is the oldest number that has not completed, or
  // `number`.
  void OnPost(const WorkRequest& request, uint64_t number, uint64_t oldest,
              ibv_send_wr* asked, ibv_sge* own);
  // Ends the chain of the requests since the last call. Returns true if one of
  // them is native.
  bool EndChain() { return std::exchange(is_in_chain_, false); }

 private:
  void OnAtomicWrite(const WorkRequest& request, uint64_t number,
                     uint64_t oldest, ibv_send_wr* asked, ibv_sge* own);
  void OnFlush(const WorkRequest& request, uint64_t number, ibv_send_wr* asked,
               ibv_sge* own);

  const NativeAbilities abilities_;
  VerbsFabricCounters& counters_;
  WrittenRange written_;
  // One past the number of the last of each.
  uint64_t after_atomic_write_ = 0;
  uint64_t after_read_flush_ = 0;
  bool is_in_chain_ = false;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_SENDS_H_
