// SPDX-License-Identifier: Apache-2.0
// Two or three threads on a ring of a few lines, under every schedule with at
// most two preemptions, with the power cut at every fence and yield point.
//
// More preemptions: ALPHEUS_TINY_LOG_PREEMPTIONS=3 ./tiny_log_threads_test
#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/thread_token.h"
#include "log/format/layout.h"
#include "tests/support/fixtures/fiber_schedules.h"
#include "tests/support/fixtures/recovery_checker.h"
#include "tests/support/fixtures/tiny_log.h"
#include "tests/support/oracles/crash_enumerator.h"
#include "tests/support/oracles/log_oracle.h"

namespace alpheus::testing {
namespace {

using Primitive = model::ModelPersistence::Primitive;

// A step of one of the threads.
enum class Step {
  kAppend,     // one line, forced
  kAppendTwo,  // two lines, forced
  kReserve,    // one line; filled and completed by kComplete
  kComplete,
  kAbort,
  kForce,  // the last LSN that this thread was given
  kCleanOldest,
  kCleanAll,
};

struct Program {
  const char* name;
  uint64_t ring_lines;
  uint64_t phase_lines;
  uint64_t live_records;  // when the threads start
  std::vector<std::vector<Step>> threads;
};

std::vector<Program> Programs() {
  using enum Step;
  return {
      {"AppendWhileForceWhileCleanup",
       8,
       9,
       2,
       {{kAppend}, {kReserve, kComplete, kForce}, {kCleanOldest}}},
      {"ThreeAppends", 8, 8, 0, {{kAppend}, {kAppend}, {kAppend}}},
      {"AppendsOverTheEndOfTheRing",
       8,
       13,
       0,
       {{kAppendTwo}, {kAppendTwo}, {kAppend}}},
      {"ReservationBlocksForces",
       8,
       14,
       0,
       {{kReserve, kComplete}, {kAppend}, {kReserve, kComplete, kForce}}},
      {"AbortBetweenForces",
       8,
       10,
       0,
       {{kReserve, kAbort, kForce}, {kAppend}, {kReserve, kComplete, kForce}}},
      {"TwoLeaders",
       8,
       11,
       0,
       {{kReserve, kComplete, kReserve, kComplete, kForce},
        {kReserve, kComplete, kForce}}},
      {"WatermarksChangeHands", 8, 8, 0, {{kAppend, kAppend}, {kAppend}}},
      {"CleanupAllBesideAppends",
       8,
       12,
       1,
       {{kAppend}, {kCleanAll}, {kAppendTwo}}},
      {"FullRingWaitsForCleanup",
       4,
       6,
       3,
       {{kAppendTwo}, {kCleanOldest, kCleanOldest}, {kAppend}}},
      {"FullRingPassesAbortedRecords",
       4,
       5,
       0,
       {{kReserve, kAbort, kAppendTwo}, {kReserve, kAbort, kForce}, {kAppend}}},
  };
}

int PreemptionsMax() {
  const char* max = std::getenv("ALPHEUS_TINY_LOG_PREEMPTIONS");
  return max == nullptr ? 2 : std::atoi(max);
}

// One run of a program: the log, its threads, and power cuts on the way.
// With `failing_fence` n > 0 the n-th fence of the run fails.
class ProgramRun {
 public:
  ProgramRun(const Program& program, FiberSchedules& schedules,
             CrashEnumerator& enumerator, RecoveryChecker& checker,
             uint64_t failing_fence)
      : program_(program),
        schedules_(schedules),
        enumerator_(enumerator),
        checker_(checker),
        waiter_(schedules),
        log_({.ring_lines = program.ring_lines,
              .phase_lines = program.phase_lines,
              .live_records = program.live_records},
             &waiter_),
        threads_(program.threads.size()) {
    log_.model().FailFence(failing_fence);
  }

  bool fence_failed() { return !log_.model().Error().ok(); }
  bool failed() const { return failed_; }

  void Run() {
    std::vector<std::function<void()>> fibers;
    for (size_t i = 0; i < threads_.size(); ++i) {
      fibers.push_back([this, i] { RunThread(i); });
    }
    log_.model().SetHook([this](const model::ModelPersistence::Event& event) {
      OnEvent(event);
    });
    const bool ended =
        schedules_.Run(fibers, [this](size_t fiber) { BecomeThread(fiber); });
    BecomeThread(threads_.size());
    log_.model().SetHook({});
    if (!ended) {
      Expect("the threads wait for each other for ever", "");
      std::abort();  // their stacks hold half-finished calls
    }
    for (Thread& thread : threads_) {
      if (thread.open) log_.log()->Abort(thread.record);
    }
    Cut("all threads ended");
    if (fence_failed()) {
      if (log_.log()->Force(log_.log()->next_lsn() - 1, 1, Deadline()).ok() ||
          log_.log()->Close().ok()) {
        Expect("the log goes on after a failed fence", "");
      }
      return;
    }
    Expect(log_.CheckDurableIsPersisted(), "");
    if (log_.model().lint().unfenced_words_overwritten != 0) {
      Expect("a thread wrote over another's unfenced store", "");
    }
    Expect(log_.Run(TinyOp::kReopen), "");
  }

 private:
  struct Thread {
    ReservedRecord record;
    bool open = false;
    Lsn last{0};
    bool no_preemption = false;  // inside a call that holds a lock
    bool in_superline = false;   // the same, in the middle of an update
  };

  void BecomeThread(size_t fiber) {
    SetThreadToken(static_cast<uint32_t>(fiber) + 1000);
    log_.model().SetThread(static_cast<uint32_t>(fiber));
  }

  void RunThread(size_t i) {
    for (const Step step : program_.threads[i]) {
      Expect(RunStep(threads_[i], step), "");
      Cut("a call returned");
      schedules_.SwitchPoint();
    }
  }

  std::string RunStep(Thread& thread, Step step) {
    switch (step) {
      case Step::kAppend:
        return Append(thread, 16);
      case Step::kAppendTwo:
        return Append(thread, 20);
      case Step::kReserve:
        return Reserve(thread);
      case Step::kComplete:
        return Complete(thread);
      case Step::kAbort:
        return Abort(thread);
      case Step::kForce:
        return Force(thread);
      case Step::kCleanOldest:
        return CleanOldest(thread);
      case Step::kCleanAll:
        return CleanAll(thread);
    }
    return "unknown step";
  }

  std::string Append(Thread& thread, size_t bytes) {
    const std::string payload = log_.MakePayload(bytes);
    const LogOracle::Ticket ticket = oracle().NoteAppending(payload);
    const std::array<std::span<const std::byte>, 1> parts = {AsBytes(payload)};
    const absl::StatusOr<Lsn> lsn = log_.log()->Append(parts, 1, Deadline());
    if (lsn.ok()) {
      oracle().NoteAppended(ticket, *lsn);
      oracle().NoteDurable(*lsn);
      thread.last = *lsn;
      return "";
    }
    if (!Unknown(lsn.status())) oracle().NoteRefused(ticket);
    return RoomOnly("append", lsn.status());
  }

  std::string Reserve(Thread& thread) {
    absl::StatusOr<ReservedRecord> record = log_.log()->Reserve(16, Deadline());
    if (!record.ok()) return RoomOnly("reserve", record.status());
    oracle().NoteReserved(record->lsn);
    thread.record = *record;
    thread.open = true;
    thread.last = record->lsn;
    return "";
  }

  std::string Complete(Thread& thread) {
    if (!thread.open) return "";
    thread.open = false;
    const std::string payload = log_.MakePayload(16);
    std::memcpy(thread.record.payload, payload.data(), payload.size());
    thread.record.filled_in_place = true;
    schedules_.SwitchPoint();
    oracle().NoteCompleting(thread.record.lsn, payload);
    const absl::Status status = log_.log()->Complete(thread.record);
    if (status.ok() || Unknown(status)) return "";
    return absl::StrCat("complete: ", status.ToString());
  }

  std::string Abort(Thread& thread) {
    if (!thread.open) return "";
    thread.open = false;
    oracle().NoteAborting(thread.record.lsn);
    log_.log()->Abort(thread.record);
    return "";
  }

  std::string Force(Thread& thread) {
    if (thread.last.value == 0) return "";
    const absl::Status status = log_.log()->Force(thread.last, 1, Deadline());
    if (Unknown(status)) return "";
    if (!status.ok()) return absl::StrCat("force: ", status.ToString());
    oracle().NoteDurable(thread.last);
    return "";
  }

  std::string CleanOldest(Thread& thread) {
    const Lsn lsn = log_.log()->head_lsn();
    const bool allowed = lsn <= log_.log()->durable_lsn();
    if (allowed) oracle().NoteCleaning(lsn, lsn);
    thread.no_preemption = true;
    const absl::Status status = log_.log()->Cleanup(lsn);
    thread.no_preemption = false;
    if (Unknown(status)) return "";
    if (allowed ? status.ok() || absl::IsNotFound(status)
                : absl::IsFailedPrecondition(status) ||
                      absl::IsOutOfRange(status)) {
      return "";
    }
    return absl::StrCat("cleanup: ", status.ToString());
  }

  std::string CleanAll(Thread& thread) {
    const Lsn next = log_.log()->next_lsn();
    // It may reach what the others append meanwhile.
    oracle().NoteCleaning(log_.log()->head_lsn(), next + 4);
    thread.no_preemption = true;
    const absl::Status status = log_.log()->CleanupAll();
    thread.no_preemption = false;
    oracle().NoteCleaningEndsBefore(log_.log()->next_lsn());
    if (status.ok()) {
      oracle().NoteDurable(next - 1);
      oracle().NoteAllCleaned(next);
    } else if (!absl::IsFailedPrecondition(status) && !Unknown(status)) {
      return absl::StrCat("cleanup all: ", status.ToString());
    }
    return "";
  }

  // The medium failed: what became of the call is open.
  bool Unknown(const absl::Status& status) {
    return fence_failed() && status == log_.model().Error();
  }

  std::string RoomOnly(const char* what, const absl::Status& status) {
    if (absl::IsResourceExhausted(status) || Unknown(status)) return "";
    return absl::StrCat(what, ": ", status.ToString());
  }

  void OnEvent(const model::ModelPersistence::Event& event) {
    if (event.primitive == Primitive::kFence ||
        event.primitive == Primitive::kYieldPoint) {
      Cut(event.name);
    }
    if (schedules_.running() >= threads_.size()) return;
    Thread& thread = threads_[schedules_.running()];
    if (event.bytes != 0) {
      thread.in_superline = event.offset < kWatermarkOffset;
    } else if (event.primitive == Primitive::kYieldPoint) {
      thread.in_superline = false;
    }
    if (thread.no_preemption || thread.in_superline) return;
    // Single words of a header are nobody else's business.
    if (event.primitive == Primitive::kStore8 ||
        event.primitive == Primitive::kCopy) {
      return;
    }
    schedules_.SwitchPoint();
  }

  void Cut(const char* name) {
    // Up to the first choice that is new, the last run was here too.
    if (failed_ || !schedules_.IsNew()) return;
    point_name_ = name;
    const LogOracle& oracle = log_.oracle();
    enumerator_.Enumerate(log_.model(), oracle.Digest(),
                          [&](const CrashState& state) {
                            if (failed_) return;
                            const std::string wrong =
                                checker_.Check(state.image, state.hash, oracle);
                            if (!wrong.empty()) Expect(wrong, state.Describe());
                          });
  }

  void Expect(const std::string& wrong, const std::string& state) {
    if (wrong.empty() || failed_) return;
    failed_ = true;
    ADD_FAILURE() << wrong << "\n " << log_.Describe()
                  << "\n schedule (fibers in order, * preempted): "
                  << schedules_.Describe() << "\n power cut at: " << point_name_
                  << "\n"
                  << state;
  }

  LogOracle& oracle() { return log_.oracle(); }

  const Program& program_;
  FiberSchedules& schedules_;
  CrashEnumerator& enumerator_;
  RecoveryChecker& checker_;
  FiberWaiter waiter_;
  TinyLog log_;
  std::vector<Thread> threads_;
  const char* point_name_ = "";
  bool failed_ = false;
};

class TinyLogThreadsTest : public ::testing::TestWithParam<Program> {};

void Print(const char* what, const Program& program, uint64_t schedules,
           const CrashEnumerator& enumerator, const RecoveryChecker& checker) {
  const CrashEnumerator::Counts& c = enumerator.counts();
  std::printf("[   counts ] %s, %s: schedules %" PRIu64
              ", crash points %" PRIu64 " (%" PRIu64
              " in full), images %" PRIu64 ", crash states %" PRIu64
              ", recoveries %" PRIu64 ", most open words %zu\n",
              what, program.name, schedules, c.points, c.exhaustive_points,
              c.images, c.distinct, checker.counts().recoveries, c.words_max);
}

TEST_P(TinyLogThreadsTest, EveryScheduleSurvivesEveryPowerCut) {
  const Program& program = GetParam();
  FiberSchedules schedules({.preemptions_max = PreemptionsMax()});
  CrashEnumerator enumerator{CrashEnumerator::Options()};
  RecoveryChecker checker{RecoveryChecker::Options()};
  bool failed = false;
  while (!failed && schedules.Begin()) {
    ProgramRun run(program, schedules, enumerator, checker, 0);
    run.Run();
    failed = run.failed();
  }
  Print("threads", program, schedules.schedules(), enumerator, checker);
}

// P-H20, with others in the middle of their calls: one preemption less.
TEST_P(TinyLogThreadsTest, FailedFenceOfOneThreadStopsAll) {
  const Program& program = GetParam();
  CrashEnumerator enumerator{CrashEnumerator::Options()};
  RecoveryChecker checker{RecoveryChecker::Options()};
  uint64_t schedule_count = 0;
  bool failed = false;
  bool fence_failed = true;
  for (uint64_t n = 1; !failed && fence_failed; ++n) {
    FiberSchedules schedules({.preemptions_max = PreemptionsMax() - 1});
    fence_failed = false;
    while (!failed && schedules.Begin()) {
      ProgramRun run(program, schedules, enumerator, checker, n);
      run.Run();
      failed = run.failed();
      fence_failed |= run.fence_failed();
    }
    schedule_count += schedules.schedules();
  }
  Print("threads and failing fences", program, schedule_count, enumerator,
        checker);
}

INSTANTIATE_TEST_SUITE_P(Programs, TinyLogThreadsTest,
                         ::testing::ValuesIn(Programs()),
                         [](const ::testing::TestParamInfo<Program>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace alpheus::testing
