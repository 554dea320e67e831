// SPDX-License-Identifier: Apache-2.0
// log_harness: a ring log on modelled memory, for tests of the core.
//
// Everything is seeded: the same calls give the same region, byte for byte.
#ifndef ALPHEUS_TESTS_TESTING_LOG_HARNESS_H_
#define ALPHEUS_TESTS_TESTING_LOG_HARNESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/waiter.h"
#include "log/core/ring_log.h"
#include "log/pmem/crash_model.h"
#include "recovery/local_opening.h"

namespace alpheus::testing {

// A clock that each look moves on by a microsecond, so that deadlines pass
// without anybody sleeping.
class SteppingClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_nanos_ += 1000; }

 private:
  mutable int64_t now_nanos_ = 0;
};

// For one thread: waiting can't help, so it returns at once.
class NoWaiter final : public Waiter {
 public:
  bool Spin(int /*round*/) override { return false; }
  void Wait(const std::atomic<uint32_t>& /*generation*/, uint32_t /*seen*/,
            Deadline /*deadline*/) override {}
  void WakeAll(const std::atomic<uint32_t>& /*generation*/) override {}
};

class LogHarness {
 public:
  struct Options {
    uint64_t ring_capacity = 4096;
    uint64_t table_capacity = 64;
    uint32_t exposure_records_max = 64;
    uint64_t seed = 1;
  };

  // A freshly formatted region; no log is open yet.
  explicit LogHarness(const Options& options);
  ~LogHarness();

  // Recovers and opens an epoch; a log that is open is dropped as it is (its
  // open reservations are completed by nobody, so there must be none).
  absl::Status Open(Lsn cleanup_through = Lsn(0));
  // Drops the log without closing it, as kill -9 would: stores stay visible.
  void Drop() { log_.reset(); }
  // Drops it and cuts the power: what the model has not persisted is gone.
  void PowerCut();

  RingLog<ModelPersistence>& log() { return *log_; }
  ModelPersistence& pmem() { return pmem_; }
  std::span<std::byte> region() { return pmem_.region(); }
  const OpenedEpoch& opened() const { return *opened_; }

  // Append with force; the test fails the process if it does not succeed.
  Lsn Append(std::string_view text);
  // Payloads that the last Open recovered, cleaned and aborted left out.
  std::vector<std::string> Recovered() const;

 private:
  const Options options_;
  Random random_;
  ModelPersistence pmem_;
  SteppingClock clock_;
  NoWaiter waiter_;
  std::optional<OpenedEpoch> opened_;
  std::unique_ptr<RingLog<ModelPersistence>> log_;
};

// Payloads of the records from the head of the region's superline on, as
// recovery would deliver them.
std::vector<std::string> LivePayloads(std::span<std::byte> region);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TESTING_LOG_HARNESS_H_
