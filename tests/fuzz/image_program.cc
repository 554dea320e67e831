// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/image_program.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/base/waiter.h"
#include "log/core/read/scan.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/core/ring/ring_log.h"
#include "log/core/write/reserved_record.h"
#include "log/format/layout.h"
#include "log/pmem/libpmem_persistence.h"
#include "recovery/replica/local_opening.h"
#include "tests/fuzz/line_buffer.h"

namespace alpheus::testing {
namespace {

using MemoryRingLog = RingLog<LibpmemPersistence>;

// All waits are over before they start: there is one thread.
class ZeroClock final : public Clock {
 public:
  int64_t NowNanos() const override { return 0; }
};
const Deadline kAtOnce = Deadline::AtNanos(0);

class NobodyWaits final : public Waiter {
 public:
  bool Spin(int /*round*/) override { return false; }
  void Wait(const std::atomic<uint32_t>& /*generation*/, uint32_t /*seen*/,
            Deadline /*deadline*/) override {}
  void WakeAll(const std::atomic<uint32_t>& /*generation*/) override {}
};

// The program's machine: a region in plain memory and the log on it.
class Machine {
 public:
  Machine(uint64_t ring_lines, uint64_t table_capacity)
      : layout_(*Layout::ForRing(ring_lines * kLineBytes, table_capacity)),
        buffer_(layout_.region_bytes),
        // Flushing would do nothing to plain memory but take time.
        pmem_({.auto_flush = true}) {
    const absl::Status formatted =
        FormatRegion(pmem_, region(), layout_, NewLocalIdentity(random_));
    ALPHEUS_CHECK(formatted.ok(), "plain memory does not fail");
    Reopen();
  }
  ~Machine() { Stop(); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void Append(uint64_t bytes) {
    const std::vector<std::byte> payload = MakePayload(bytes);
    const std::span<const std::byte> part = payload;
    NoteDurable(log_->Append({&part, 1}, 1, kAtOnce).status());
  }
  void Reserve(uint64_t bytes, bool fill) {
    absl::StatusOr<ReservedRecord> record = log_->Reserve(bytes, kAtOnce);
    if (!record.ok()) return;
    const std::vector<std::byte> payload = MakePayload(bytes);
    if (fill) {
      NoteDurable(log_->Copy(*record, 0, payload));
    }
    open_.push_back(*record);
  }
  void CompleteOne(uint64_t which) {
    if (open_.empty()) return;
    const auto at = open_.begin() + static_cast<int64_t>(which % open_.size());
    NoteDurable(log_->Complete(*at));
    open_.erase(at);
  }
  void AbortOne(uint64_t which) {
    if (open_.empty()) return;
    const auto at = open_.begin() + static_cast<int64_t>(which % open_.size());
    log_->Abort(*at);
    open_.erase(at);
  }
  void Force() { NoteDurable(log_->Force(LastLsn(), 1, kAtOnce)); }
  void Clean(uint64_t ahead, bool through) {
    const Lsn lsn = log_->head_lsn() + ahead;
    NoteDurable(through ? log_->CleanupThrough(lsn) : log_->Cleanup(lsn));
  }
  void CloseAndReopen() {
    while (!open_.empty()) AbortOne(0);
    NoteDurable(log_->Close());
    Reopen();
  }
  // Reopens the log as kill -9 leaves it, with its open reservations.
  void DieAndReopen() {
    const LineBuffer image(buffer_.bytes());
    Stop();
    std::ranges::copy(image.bytes(), region().begin());
    Reopen();
  }
  void Close() {
    while (!open_.empty()) AbortOne(0);
    NoteDurable(log_->Close());
  }

  TinyImage Image() const {
    TinyImage image;
    const std::span<std::byte> bytes = buffer_.bytes();
    image.bytes.assign(bytes.begin(), bytes.end());
    image.earlier = earlier_;
    image.durable_lsn = durable_lsn_;
    return image;
  }

 private:
  std::span<std::byte> region() const { return buffer_.bytes(); }
  Lsn LastLsn() const { return log_->next_lsn() - 1; }

  // Refusals (full, nothing there, blocked by an open record) are part of the
  // program; what counts is what the log says is durable.
  void NoteDurable(const absl::Status& /*refused*/) {
    durable_lsn_ = std::max(durable_lsn_, log_->durable_lsn().value);
  }

  void Stop() {
    while (!open_.empty()) AbortOne(0);
    log_.reset();
  }

  void Reopen() {
    log_.reset();
    absl::StatusOr<recovery::OpenedEpoch> opened =
        recovery::OpenEpochLocally(pmem_, region(), {.name = "fuzz"}, random_);
    if (absl::IsResourceExhausted(opened.status())) {
      // The epoch table is full. Cleaning everything makes room.
      const auto state = ReadRegionState(region(), "fuzz");
      recovery::LocalOpeningOptions options{.name = "fuzz"};
      options.cleanup_through =
          ScanLog(ScanInputOf(region(), *state)).end.lsn - 1;
      opened = recovery::OpenEpochLocally(pmem_, region(), options, random_);
    }
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.status().ToString().c_str());
    }
    ALPHEUS_CHECK(opened.ok(), "IMP1 (image_program.h)");
    log_ = std::make_unique<MemoryRingLog>(pmem_, region(), opened->start,
                                           RingLogOptions{"fuzz", 64}, clock_,
                                           waiter_);
    durable_lsn_ = opened->start.end.lsn.value - 1;
    const std::span<std::byte> bytes = region();
    earlier_.emplace_back(bytes.begin(), bytes.end());
  }

  std::vector<std::byte> MakePayload(uint64_t bytes) {
    // Each differs from the others, and no two lines of it are the same.
    std::vector<std::byte> payload(bytes);
    uint8_t value = ++payloads_;
    for (std::byte& byte : payload) byte = static_cast<std::byte>(value++);
    return payload;
  }

  const Layout layout_;
  const LineBuffer buffer_;
  LibpmemPersistence pmem_;
  Random random_{1};
  ZeroClock clock_;
  NobodyWaits waiter_;
  std::unique_ptr<MemoryRingLog> log_;
  std::vector<ReservedRecord> open_;
  std::vector<std::vector<std::byte>> earlier_;
  uint64_t durable_lsn_ = 0;
  uint8_t payloads_ = 0;
};

// Sizes on both sides of the line's end, up to what is too large.
uint64_t PayloadBytes(FuzzInput& input, uint64_t ring_lines) {
  const uint64_t lines = input.Below(ring_lines / 2 + 1);
  const uint64_t least = lines == 0 ? 0 : lines * kLineBytes - 48;
  return least + input.Below(20);
}

void RunOperation(FuzzInput& input, uint64_t ring_lines, Machine* machine) {
  switch (input.Below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return machine->Append(PayloadBytes(input, ring_lines));
    case 5:
    case 6:
      return machine->Reserve(PayloadBytes(input, ring_lines), input.Flag());
    case 7:
    case 8:
      return machine->CompleteOne(input.Byte());
    case 9:
      return machine->AbortOne(input.Byte());
    case 10:
      return machine->Force();
    case 11:
      return machine->Clean(input.Below(8), /*through=*/false);
    case 12:
    case 13:
      return machine->Clean(input.Below(8), /*through=*/true);
    case 14:
      return machine->CloseAndReopen();
    default:
      return machine->DieAndReopen();
  }
}

}  // namespace

TinyImage RunImageProgram(FuzzInput& input) {
  const uint64_t ring_lines = 4 + input.Below(13);
  constexpr uint64_t kCapacities[] = {64, 1, 2, 4};
  Machine machine(ring_lines, kCapacities[input.Below(4)]);
  const bool close = input.Flag();
  for (uint64_t left = input.Below(32); left > 0; --left) {
    RunOperation(input, ring_lines, &machine);
  }
  if (close) machine.Close();
  return machine.Image();
}

const TinyImage& PlainImage() {
  static const TinyImage image = [] {
    Machine machine(/*ring_lines=*/8, /*table_capacity=*/64);
    machine.Append(5);
    machine.Append(70);
    machine.CloseAndReopen();
    machine.Clean(0, /*through=*/true);
    machine.Append(30);
    machine.Append(100);
    machine.Close();
    return machine.Image();
  }();
  return image;
}

}  // namespace alpheus::testing
