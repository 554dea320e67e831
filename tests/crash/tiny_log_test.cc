// SPDX-License-Identifier: Apache-2.0
// Every sequence of operations on a ring of a few lines, cut at every point,
// with every image that the cut may leave: the log reopens, holds what was
// acknowledged, and nothing that was not completed.
//
// A longer run: ALPHEUS_TINY_LOG_OPS=4 ./tiny_log_test (about 12 times as long
// for each operation more).
#include "tests/support/fixtures/tiny_log.h"

#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/mix.h"
#include "log/base/random.h"
#include "tests/support/fixtures/recovery_checker.h"
#include "tests/support/oracles/crash_enumerator.h"
#include "tests/support/oracles/log_oracle.h"

namespace alpheus::testing {
namespace {

using Primitive = model::ModelPersistence::Primitive;

// Operations per sequence unless ALPHEUS_TINY_LOG_OPS says otherwise.
size_t SequenceLengthMax(size_t otherwise) {
  const char* ops = std::getenv("ALPHEUS_TINY_LOG_OPS");
  return ops == nullptr ? otherwise : std::strtoul(ops, nullptr, 10);
}

// The seed of the random runs; ALPHEUS_SEED sets it.
uint64_t Seed() {
  const char* seed = std::getenv("ALPHEUS_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

// One in so many crash images of sequences longer than one is recovered with
// crashes inside.
constexpr uint64_t kCrashInsideOneIn = 32;

std::vector<TinyOp> AllOps() {
  std::vector<TinyOp> ops;
  for (int op = 0; op < kTinyOpCount; ++op) {
    ops.push_back(static_cast<TinyOp>(op));
  }
  return ops;
}

// Calls `visit` with each sequence of exactly `length` operations from `among`.
template <class Visit>
void ForEachSequence(std::span<const TinyOp> among, size_t length,
                     Visit visit) {
  std::vector<size_t> digits(length, 0);
  std::vector<TinyOp> ops(length);
  for (;;) {
    for (size_t i = 0; i < length; ++i) ops[i] = among[digits[i]];
    if (!visit(ops)) return;
    size_t i = 0;
    while (i < length && ++digits[i] == among.size()) digits[i++] = 0;
    if (i == length) return;
  }
}

// Cuts the power in the last operation of sequences, at each fence, each yield
// point and when it has returned; earlier operations were the last ones of
// shorter sequences.
class PowerCutter {
 public:
  PowerCutter(std::string what, const CrashEnumerator::Options& enumeration,
              const RecoveryChecker::Options& recovery)
      : what_(std::move(what)), enumerator_(enumeration), checker_(recovery) {}

  // Reports what went wrong in `log` since the last operation, if anything.
  bool Failed() const { return failed_; }

  // From now on the process is killed, and the power is cut in the recovery.
  void KillInstead() { kill_ = true; }

  void RunSequence(const TinyConfig& config, std::span<const TinyOp> ops) {
    TinyLog log(config);
    for (const TinyOp op : ops.first(ops.size() - 1)) {
      if (!log.CanRun(op)) return;
      // Failures of these were reported with the shorter sequence.
      if (!log.Run(op).empty()) return;
    }
    if (!log.CanRun(ops.back())) return;
    ++sequences_;
    RunWithCuts(log, ops.back());
  }

  // The same, where power cuts may happen between the operations too.
  void RunWithCuts(TinyLog& log, TinyOp op) {
    point_ = 0;
    log.model().SetHook([&](const model::ModelPersistence::Event& event) {
      if (event.primitive == Primitive::kFence ||
          event.primitive == Primitive::kYieldPoint) {
        Cut(log, event.name);
      }
    });
    const std::string wrong = log.Run(op);
    log.model().SetHook({});
    Expect(wrong, log, "");
    Cut(log, "returned");
    Expect(log.CheckDurableIsPersisted(), log, "");
  }

  // The n-th fence of the operation fails. The log must fail from then on.
  void RunWithFailure(TinyLog& log, TinyOp op, uint64_t n) {
    ++sequences_;
    point_ = 0;
    log.model().FailFence(n);
    Expect(log.Run(op), log, "");
    point_name_ = "a fence failed";
    if (log.model().Error().ok()) Expect("the fence did not come", log, "");
    if (log.last_status().ok()) {
      Expect("OK although a fence failed", log, "");
    }
    if (log.log() != nullptr) ExpectUnusable(log);
    Cut(log, "after the failure");
  }

  void Expect(const std::string& wrong, TinyLog& log,
              const std::string& state) {
    if (wrong.empty() || failed_) return;
    failed_ = true;
    ADD_FAILURE() << wrong << "\n " << log.Describe() << "\n power cut: point "
                  << point_ << " of the last one (" << point_name_
                  << "), fence " << log.model().fence_count() + 1 << "\n"
                  << state;
  }

  void Print() const {
    const CrashEnumerator::Counts& c = enumerator_.counts();
    const RecoveryChecker::Counts r = checker_.counts();
    if (kill_)
      std::printf("[   counts ] %s: kills %" PRIu64 "\n", what_.c_str(),
                  kills_);
    std::printf("[   counts ] %s: sequences %" PRIu64 ", crash points %" PRIu64
                " (%" PRIu64 " in full), images %" PRIu64
                ", crash states %" PRIu64 ", inside recovery %" PRIu64
                ", inside that %" PRIu64 ", recoveries %" PRIu64
                ", most open words %zu\n",
                what_.c_str(), sequences_, c.points, c.exhaustive_points,
                c.images, c.distinct, r.nested_states[0], r.nested_states[1],
                r.recoveries, c.words_max);
  }

 private:
  void ExpectUnusable(TinyLog& log) {
    ModelLog& failed = *log.log();
    const Lsn durable = failed.durable_lsn();
    const Lsn last = failed.next_lsn() - 1;
    const std::string payload = log.MakePayload(16);
    const std::array<std::span<const std::byte>, 1> parts = {AsBytes(payload)};
    absl::StatusOr<ReservedRecord> reserved = failed.Reserve(1, Deadline());
    if (reserved.ok()) failed.Abort(*reserved);
    const struct {
      const char* call;
      absl::Status status;
    } results[] = {
        {"append", failed.Append(parts, 1, Deadline()).status()},
        {"reserve", reserved.status()},
        {"force", failed.Force(last, 1, Deadline())},
        {"cleanup all", failed.CleanupAll()},
        {"close", failed.Close()},
    };
    for (const auto& result : results) {
      if (result.status == log.model().Error()) continue;
      Expect(absl::StrCat(result.call,
                          " after a failed fence: ", result.status.ToString()),
             log, "");
    }
    if (failed.durable_lsn() > durable) {
      Expect("the durable LSN moved after a failed fence", log, "");
    }
  }

  void Cut(TinyLog& log, const char* name) {
    ++point_;
    point_name_ = name;
    if (failed_) return;
    const LogOracle& oracle = log.oracle();
    if (kill_) {
      ++kills_;
      Expect(
          checker_.CheckAfterKill(log.model(), Mix(sequences_, point_), oracle),
          log, "");
      return;
    }
    enumerator_.Enumerate(log.model(), oracle.Digest(),
                          [&](const CrashState& state) {
                            if (failed_) return;
                            const std::string wrong =
                                checker_.Check(state.image, state.hash, oracle);
                            if (!wrong.empty())
                              Expect(wrong, log, state.Describe());
                          });
  }

  const std::string what_;
  CrashEnumerator enumerator_;
  RecoveryChecker checker_;
  int point_ = 0;
  const char* point_name_ = "";
  uint64_t sequences_ = 0;
  bool kill_ = false;
  uint64_t kills_ = 0;
  bool failed_ = false;
};

struct Ring {
  uint64_t lines;
  uint64_t phase;
};

// In each ring four lines are free, so that three operations fill it and go
// over its end.
constexpr uint64_t kFreeLines = 4;

TinyConfig ConfigOf(const Ring& ring) {
  TinyConfig config;
  config.ring_lines = ring.lines;
  // A whole lap before, so that old records of this epoch lie everywhere.
  config.phase_lines = ring.lines + ring.phase;
  config.live_records = ring.lines - kFreeLines;
  return config;
}

std::string RingName(const ::testing::TestParamInfo<Ring>& info) {
  return absl::StrCat("Ring", info.param.lines, "Phase", info.param.phase);
}

std::vector<Ring> AllRings() {
  std::vector<Ring> rings;
  for (const uint64_t lines : {4, 6, 8}) {
    for (uint64_t phase = 0; phase < lines; ++phase) {
      rings.push_back({lines, phase});
    }
  }
  return rings;
}

class TinyLogTest : public ::testing::TestWithParam<Ring> {};

TEST_P(TinyLogTest, EverySequenceSurvivesEveryPowerCut) {
  const Ring ring = GetParam();
  const size_t length_max = SequenceLengthMax(3);
  PowerCutter cutter(absl::StrCat("ring ", ring.lines, " phase ", ring.phase),
                     {}, {});
  const TinyConfig config = ConfigOf(ring);
  for (size_t length = 1; length <= length_max; ++length) {
    ForEachSequence(AllOps(), length, [&](std::span<const TinyOp> ops) {
      cutter.RunSequence(config, ops);
      return !cutter.Failed();
    });
  }
  cutter.Print();
}

// Six operations deep, with the four that fill and empty a ring: it goes over
// its end several times, in every phase.
constexpr TinyOp kFillAndEmpty[] = {TinyOp::kAppendTwoLines,
                                    TinyOp::kFillInPlace, TinyOp::kForceLast,
                                    TinyOp::kCleanOldest};

class TinyLogSixOperationsTest : public ::testing::TestWithParam<Ring> {};

TEST_P(TinyLogSixOperationsTest, FillingAndEmptyingSurvivesEveryPowerCut) {
  const Ring ring = GetParam();
  PowerCutter cutter(
      absl::StrCat("six operations, ring ", ring.lines, " phase ", ring.phase),
      {}, {});
  const TinyConfig config = ConfigOf(ring);
  for (size_t length = 4; length <= 6; ++length) {
    ForEachSequence(kFillAndEmpty, length, [&](std::span<const TinyOp> ops) {
      cutter.RunSequence(config, ops);
      return !cutter.Failed();
    });
  }
  cutter.Print();
}

INSTANTIATE_TEST_SUITE_P(AllRings, TinyLogSixOperationsTest,
                         ::testing::ValuesIn(AllRings()), RingName);

INSTANTIATE_TEST_SUITE_P(AllRings, TinyLogTest, ::testing::ValuesIn(AllRings()),
                         RingName);

// P-A3.7: with a ceiling a line or two ahead, nearly each record raises it.
// An opening that searches no further finds all that a scan of the whole ring
// finds (OpenModel).
class TinyLogCeilingTest : public ::testing::TestWithParam<Ring> {};

TEST_P(TinyLogCeilingTest, LowCeilingsHideNothingFromAnOpening) {
  const Ring ring = GetParam();
  for (const uint64_t step : {1, 2}) {
    RecoveryChecker::Options recovery;
    recovery.ceiling_step_bytes = step * kLineBytes;
    PowerCutter cutter(absl::StrCat("ceilings, ring ", ring.lines, " phase ",
                                    ring.phase, " step ", step),
                       {}, recovery);
    TinyConfig config = ConfigOf(ring);
    config.ceiling_lines = step;
    for (size_t length = 1; length <= SequenceLengthMax(3) - 1; ++length) {
      ForEachSequence(AllOps(), length, [&](std::span<const TinyOp> ops) {
        cutter.RunSequence(config, ops);
        return !cutter.Failed();
      });
    }
    for (const size_t length : {size_t{3}, size_t{4}}) {
      ForEachSequence(kFillAndEmpty, length, [&](std::span<const TinyOp> ops) {
        cutter.RunSequence(config, ops);
        return !cutter.Failed();
      });
    }
    cutter.Print();
  }
}

INSTANTIATE_TEST_SUITE_P(AllRings, TinyLogCeilingTest,
                         ::testing::ValuesIn(AllRings()), RingName);

// Crashes inside the recovery from every image of short sequences, and, one in
// some, inside the recovery from that.
class TinyLogRecoveryTest : public ::testing::TestWithParam<Ring> {};

TEST_P(TinyLogRecoveryTest, EveryCrashInsideRecoveryIsRecoveredFrom) {
  const Ring ring = GetParam();
  const TinyConfig config = ConfigOf(ring);
  for (size_t length = 1; length <= SequenceLengthMax(3) - 1; ++length) {
    RecoveryChecker::Options recovery;
    recovery.depth = 2;
    if (length > 1) recovery.crash_inside_one_in[0] = kCrashInsideOneIn;
    PowerCutter cutter(absl::StrCat("recovery, ring ", ring.lines, " phase ",
                                    ring.phase, " length ", length),
                       {}, recovery);
    ForEachSequence(AllOps(), length, [&](std::span<const TinyOp> ops) {
      cutter.RunSequence(config, ops);
      return !cutter.Failed();
    });
    cutter.Print();
  }
}

INSTANTIATE_TEST_SUITE_P(SmallestRing, TinyLogRecoveryTest,
                         ::testing::Values(Ring{4, 0}, Ring{4, 1}, Ring{4, 2},
                                           Ring{4, 3}),
                         RingName);

// P-H7: after a kill, what recovery saw in the cache is on media before
// anything is built on it.
class TinyLogKillTest : public ::testing::TestWithParam<Ring> {};

TEST_P(TinyLogKillTest, PowerCutsInTheRecoveryAfterAKillAreSurvived) {
  const Ring ring = GetParam();
  RecoveryChecker::Options recovery;
  recovery.nested_repeat_one_in = 16;
  PowerCutter cutter(
      absl::StrCat("kills, ring ", ring.lines, " phase ", ring.phase), {},
      recovery);
  cutter.KillInstead();
  const TinyConfig config = ConfigOf(ring);
  for (size_t length = 1; length <= SequenceLengthMax(3) - 1; ++length) {
    ForEachSequence(AllOps(), length, [&](std::span<const TinyOp> ops) {
      cutter.RunSequence(config, ops);
      return !cutter.Failed();
    });
  }
  cutter.Print();
}

INSTANTIATE_TEST_SUITE_P(SmallestRing, TinyLogKillTest,
                         ::testing::Values(Ring{4, 0}, Ring{4, 1}, Ring{4, 2},
                                           Ring{4, 3}),
                         RingName);

// Long random runs in which the power is also cut between the operations, so
// that records of several epochs, recovered and cut off ones, lie in the ring.
class TinyLogRunTest : public ::testing::TestWithParam<uint64_t> {};

std::vector<std::byte> RandomCut(model::ModelPersistence& model,
                                 Random& random) {
  const std::vector<model::ModelPersistence::DirtyWord> words =
      model.DirtyWords();
  std::vector<uint8_t> choices;
  // Now and then nothing or everything reaches the medium.
  const uint64_t kind = random.Below(4);
  for (const auto& word : words) {
    choices.push_back(
        kind == 0   ? 0
        : kind == 1 ? word.current
                    : static_cast<uint8_t>(random.Below(word.values.size())));
  }
  return model.CutChoosing(words, choices);
}

TEST_P(TinyLogRunTest, RandomRunsWithCrashesBetweenSurviveEveryPowerCut) {
  constexpr int kRuns = 300;
  constexpr int kOps = 8;
  const uint64_t ring_lines = GetParam();
  const uint64_t seed = Seed();
  CrashEnumerator::Options enumeration;
  enumeration.product_max = 256;  // many points rather than all of one
  RecoveryChecker::Options recovery;
  recovery.ceiling_step_bytes = kLineBytes;
  PowerCutter cutter(absl::StrCat("random runs, ring ", ring_lines),
                     enumeration, recovery);
  for (uint64_t run = 0; run < kRuns && !cutter.Failed(); ++run) {
    Random random(Mix(seed, run));
    TinyConfig config;
    config.ring_lines = ring_lines;
    config.phase_lines = random.Below(2 * ring_lines);
    config.ceiling_lines = random.Below(4);
    config.seed = Mix(seed, run);
    TinyLog log(config);
    for (int i = 0; i < kOps && !cutter.Failed(); ++i) {
      const TinyOp op = static_cast<TinyOp>(random.Below(kTinyOpCount));
      if (!log.CanRun(op)) continue;
      cutter.RunWithCuts(log, op);
      if (random.Below(4) == 0) {
        cutter.Expect(log.CrashAndReopen(RandomCut(log.model(), random)), log,
                      "");
      }
    }
  }
  cutter.Print();
}

INSTANTIATE_TEST_SUITE_P(Rings, TinyLogRunTest,
                         // In the larger rings the head is published lazily.
                         ::testing::Values(4, 5, 7, 32, 64),
                         [](const ::testing::TestParamInfo<uint64_t>& info) {
                           return absl::StrCat("Ring", info.param);
                         });

// P-H20: after a failed fence nothing is acknowledged any more, and whatever
// the power cut then leaves is one of the outcomes that were open.
class TinyLogFailureTest : public ::testing::TestWithParam<Ring> {};

uint64_t FencesOfLast(const TinyConfig& config, std::span<const TinyOp> ops) {
  TinyLog log(config);
  uint64_t fences = 0;
  for (const TinyOp op : ops) {
    if (!log.CanRun(op)) return 0;
    fences = log.model().fence_count();
    if (!log.Run(op).empty()) return 0;
  }
  return log.model().fence_count() - fences;
}

TEST_P(TinyLogFailureTest, NothingIsAcknowledgedAfterAFailedFence) {
  const Ring ring = GetParam();
  PowerCutter cutter(
      absl::StrCat("failed fences, ring ", ring.lines, " phase ", ring.phase),
      {}, {});
  const TinyConfig config = ConfigOf(ring);
  const auto run = [&](std::span<const TinyOp> ops) {
    const uint64_t fences = FencesOfLast(config, ops);
    for (uint64_t n = 1; n <= fences && !cutter.Failed(); ++n) {
      TinyLog log(config);
      for (const TinyOp op : ops.first(ops.size() - 1)) log.Run(op);
      cutter.RunWithFailure(log, ops.back(), n);
    }
    return !cutter.Failed();
  };
  for (size_t length = 1; length <= SequenceLengthMax(3) - 1; ++length) {
    ForEachSequence(AllOps(), length, run);
  }
  cutter.Print();
}

INSTANTIATE_TEST_SUITE_P(SmallestRing, TinyLogFailureTest,
                         ::testing::Values(Ring{4, 0}, Ring{4, 1}, Ring{4, 2},
                                           Ring{4, 3}),
                         RingName);

}  // namespace
}  // namespace alpheus::testing
