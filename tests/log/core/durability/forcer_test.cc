// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/forcer.h"

#include <gtest/gtest.h>

#include "log/base/clock.h"
#include "log/base/waiter.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus {

using model::ModelPersistence;

namespace {

using Progressed = Forcer<ModelPersistence>::Progressed;

class ForcerTest : public ::testing::Test {
 protected:
  // Another thread's fence fails while the next one of this thread is under
  // way, which succeeds.
  void FailBesideTheNextFence() {
    pmem_.SetHook([this](const ModelPersistence::Event& event) {
      if (event.primitive == ModelPersistence::Primitive::kFence) {
        failure_.Fail(absl::UnavailableError("another thread's fence"));
      }
    });
  }

  const Layout layout_ = *Layout::ForRing(4096, 16);
  ModelPersistence pmem_{layout_.region_bytes};
  const Ring ring_{pmem_.region().data() + layout_.ring_offset,
                   layout_.ring_capacity};
  FutexWaiter waiter_{Clock::Real()};
  Progress progress_{waiter_};
  LogFailure failure_{progress_};
  CompletionTracker tracker_{64};
  LsnIndex index_{layout_.ring_capacity};
  Forcer<ModelPersistence> forcer_{
      pmem_,    pmem_.region(),   ring_,         Uuid{1, 2},
      Epoch(1), WatermarkPlace{}, LogPosition{}, tracker_,
      index_,   progress_,        failure_};
};

// P-F7, RL4 (ring_log.h): once a fence failed, one that succeeds beside it
// acknowledges nothing.
TEST_F(ForcerTest, AppendBesideAFailureIsNotAcknowledged) {
  FailBesideTheNextFence();
  const Reserver::Space space{Lsn(1), RingOffset(0), RingOffset(0),
                              RingOffset(kLineBytes)};
  EXPECT_EQ(forcer_.PersistOwn(space, 7, /*spins=*/1), Progressed::kFailed);
  EXPECT_EQ(forcer_.durable_lsn(), Lsn(0));
}

// The batch may hold the very record whose fence failed: it was finished by
// that, so that nobody waits for it.
TEST_F(ForcerTest, BatchBesideAFailureIsNotAcknowledged) {
  FailBesideTheNextFence();
  tracker_.NoteReserved(Lsn(1), {RingOffset(0), RingOffset(kLineBytes)}, 9);
  tracker_.MarkCompleted(Lsn(1), 7);
  EXPECT_EQ(forcer_.Step(Lsn(1)), Progressed::kFailed);
  EXPECT_EQ(forcer_.durable_lsn(), Lsn(0));
}

}  // namespace
}  // namespace alpheus
