// SPDX-License-Identifier: Apache-2.0
// tiny_log: a log of a few lines on modelled memory, and what can be done to
// it.
//
// Idea: bugs of a ring log show at its seams (wrap, PAD, full, empty, one
// record, crash inside recovery), and a ring of four lines is nothing but
// seams. TinyLog runs single operations (tiny_log_operations.cc), tells the
// oracle, and judges each result by the contract.
//
// Thread safety: one thread; model threads (fibers) may share a TinyLog's
// RingLog, not its Run.
// References: design of the tests, section 1; protocol P-B1, P-H9.
#ifndef ALPHEUS_TESTS_TESTING_TINY_LOG_H_
#define ALPHEUS_TESTS_TESTING_TINY_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/waiter.h"
#include "log/core/record_cursor.h"
#include "log/core/reserved_record.h"
#include "log/core/ring_log.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/pmem/crash_model.h"
#include "recovery/local_opening.h"
#include "tests/testing/log_oracle.h"

namespace alpheus::testing {

using ModelLog = RingLog<ModelPersistence>;

// A clock that stands still.
class StoppedClock final : public Clock {
 public:
  int64_t NowNanos() const override { return 0; }
};

// For logs with one thread, where waiting would be for ever: aborts and says
// what was going on.
class SoloWaiter final : public Waiter {
 public:
  explicit SoloWaiter(std::function<std::string()> describe)
      : describe_(std::move(describe)) {}

  bool Spin(int round) override { return round < 2; }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline deadline) override;
  void WakeAll(const std::atomic<uint32_t>&) override {}

 private:
  const std::function<std::string()> describe_;
};

struct TinyConfig {
  uint64_t ring_lines = 4;
  // Lines by which the ring has advanced when the sequence starts, in the
  // same epoch; from ring_lines on, no byte of the ring is fresh.
  uint64_t phase_lines = 0;
  // Records of one line that are live then.
  uint64_t live_records = 0;
  uint64_t seed = 1;

  std::string Describe() const;
};

enum class TinyOp {
  kAppendOneLine,  // append and force
  kAppendTwoLines,
  kFillInPlace,  // reserve, store through the pointer, complete; no force
  kForceLast,
  kAbort,         // reserve, store a little, give up
  kOpen,          // reserve two lines, keep open
  kCompleteOpen,  // the oldest that is kept open
  kCleanOldest,
  kCleanMiddle,   // the second of the live records
  kCleanThrough,  // the first two
  kCleanAll,
  kReopen,  // close, open again
  kIdle,    // nothing happens until the log has nothing left to do
};
inline constexpr int kTinyOpCount = 13;
const char* TinyOpName(TinyOp op);
std::string TinyOpNames(std::span<const TinyOp> ops);

// The payload that fills a line with its header.
inline constexpr size_t kOneLineBytes = kLineBytes - kRecordHeaderBytes;

RingLogOptions OptionsOfTiny();

// Opens the next epoch of the region in `model`.
absl::StatusOr<OpenedEpoch> OpenModel(ModelPersistence& model, uint64_t seed);
// What an opening recovered; payloads point into the model's region. DataLoss
// if a record of the range can't be read.
absl::StatusOr<RecoveredLog> ReadRecovered(ModelPersistence& model,
                                           const OpenedEpoch& opened);

class TinyLog {
 public:
  // Formatted, opened, and advanced to the phase. Aborts if that fails.
  // `waiter` is for those who call log() on several model threads; without
  // one, waiting aborts.
  explicit TinyLog(const TinyConfig& config, Waiter* waiter = nullptr);
  // Gives open reservations up.
  ~TinyLog();

  // False if the operation can't be done now (nothing is kept open).
  bool CanRun(TinyOp op) const;
  // Runs the operation and tells the oracle. Empty if its result is one that
  // the contract allows, else what is wrong.
  std::string Run(TinyOp op);
  // What the last operation returned.
  const absl::Status& last_status() const { return last_status_; }

  // Throws the log away as a power cut would and recovers from `image`, with
  // which the oracle must agree.
  std::string CrashAndReopen(std::span<const std::byte> image);

  // Empty if every byte of every durable record is persisted, whatever the
  // durable LSN was told to.
  std::string CheckDurableIsPersisted();

  ModelPersistence& model() { return *model_; }
  // Null while it is being reopened, or when the medium failed in that.
  ModelLog* log() { return log_.get(); }
  // Told of what is durable at this moment.
  LogOracle& oracle();

  // Configuration and the operations that ran, the one that runs last.
  std::string Describe() const;

  // The next payload: differs from all others of this TinyLog.
  std::string MakePayload(size_t bytes);

 private:
  absl::Status Open();
  void Advance(uint64_t lines);
  std::string Append(size_t bytes);
  std::string FillInPlace();
  std::string ForceLast();
  std::string Abort();
  std::string OpenReservation();
  std::string CompleteOpen();
  std::string Clean(Lsn lsn, bool through);
  std::string CleanAll();
  std::string Reopen();
  std::string Idle();
  std::string Judge(const char* what, const absl::Status& status,
                    std::initializer_list<absl::StatusCode> allowed);
  // Codes that an operation may fail with when it needs room.
  std::string JudgeRoom(const char* what, const absl::Status& status,
                        bool was_empty);
  void DropOpen();
  RecordCursor LiveRecords() const;
  // Of a closed log everything is persisted but the marks on cleaned records.
  std::string CheckOnlyHintsAreOpen();

  const TinyConfig config_;
  StoppedClock clock_;
  SoloWaiter solo_waiter_;
  Waiter& waiter_;
  std::unique_ptr<ModelPersistence> model_;
  std::unique_ptr<ModelLog> log_;
  LogOracle oracle_;
  bool closed_ = false;
  std::optional<ReservedRecord> open_;
  std::string open_payload_;
  absl::Status last_status_;
  std::vector<TinyOp> ran_;  // since the phase was reached
  uint64_t payload_count_ = 0;
  uint64_t openings_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TESTING_TINY_LOG_H_
