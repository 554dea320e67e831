// SPDX-License-Identifier: Apache-2.0
// idle_keeper: what must happen although nobody calls.
//
// Idea: two things would otherwise wait for the next append for ever: records
// that were completed and not forced (with frequency F up to F - 1 of them),
// and the watermark, which is one batch behind. Poll is called once per
// interval while anything happens. What was completed at one call and is still
// exposed at the next is forced; when nothing moved in between and nothing is
// exposed, the last watermark is written, backups are told what is durable, and
// there is nothing to do until the next append.
//
// Invariants:
//   IK1. A completed record with no open one before it is durable at most two
//        intervals later.
//   IK2. A log that was idle for two intervals has a watermark that names its
//        last record (P-A3.5).
//   IK3. Backups were told then that it is durable.
// Thread safety: Poll by one thread; the others append meanwhile.
// References: protocol P-A3.5, P-F6.
#ifndef ALPHEUS_LOG_CORE_IDLE_KEEPER_H_
#define ALPHEUS_LOG_CORE_IDLE_KEEPER_H_

#include "log/base/ids.h"
#include "log/base/waiter.h"
#include "log/core/forcer.h"
#include "log/core/replicated_forcer.h"
#include "log/core/reserver.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class IdleKeeper {
 public:
  enum class Next {
    kPollAgain,  // after an interval
    kSleep,      // until the next progress
  };

  // Requires: everything reserved is durable, and the watermarks say so.
  // `replicated` is null in a local log.
  IdleKeeper(Forcer<P>& forcer, ReplicatedForcer<P>* replicated,
             Reserver& reserver, Progress& progress)
      : forcer_(forcer),
        replicated_(replicated),
        reserver_(reserver),
        progress_(progress),
        last_given_(reserver.next().lsn - 1),
        watermark_lsn_(last_given_) {}

  Next Poll();

 private:
  typename Forcer<P>::Progressed Force(Lsn lsn) {
    return replicated_ == nullptr ? forcer_.Step(lsn) : replicated_->Step(lsn);
  }
  // True if the last watermark is written.
  bool WriteWatermark();
  // True if the backups hear that all is durable, or nobody is to hear.
  bool TellDurable() {
    return replicated_ == nullptr || replicated_->TellDurable();
  }

  Forcer<P>& forcer_;
  ReplicatedForcer<P>* const replicated_;
  Reserver& reserver_;
  Progress& progress_;
  Lsn last_given_;     // at the last Poll
  Lsn watermark_lsn_;  // that the last idle watermark named
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_IDLE_KEEPER_H_
