// SPDX-License-Identifier: Apache-2.0
// modelled_object_log: the log of a store, on modelled memory.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_CRASH_MODELLED_OBJECT_LOG_H_
#define ALPHEUS_TESTS_CRASH_MODELLED_OBJECT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/engine/object_log.h"
#include "log/base/status_macros.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "log/format/record.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {

class ModelledObjectLog final : public store::ObjectLog {
 public:
  // `harness` has an open log, and outlives this.
  explicit ModelledObjectLog(LogHarness& harness) : harness_(harness) {}

  absl::StatusOr<store::PlacedRecord> Append(
      size_t bytes,
      absl::FunctionRef<void(RingOffset offset, std::span<std::byte> payload)>
          fill) override {
    ALPHEUS_ASSIGN_OR_RETURN(
        ReservedRecord record,
        harness_.log().Reserve(bytes, Deadline::AtNanos(0)));
    const RingOffset offset = record.offset + kRecordHeaderBytes;
    const std::span<std::byte> payload(record.payload, bytes);
    fill(offset, payload);
    record.filled_in_place = true;
    ALPHEUS_RETURN_IF_ERROR(harness_.log().Complete(record));
    return store::PlacedRecord{record.lsn, harness_.log().epoch(), offset,
                               payload};
  }
  absl::Status ForEachRecovered(
      absl::FunctionRef<absl::Status(const store::PlacedRecord& record)> visit)
      override {
    ALPHEUS_ASSIGN_OR_RETURN(const RegionState state,
                             ReadRegionState(harness_.region(), "model"));
    absl::Status visited;
    ScanLog(ScanInputOf(harness_.region(), state),
            [&](const LogPosition&, const RecordView& record) {
              if (record.cleaned || record.aborted() || !visited.ok()) return;
              visited =
                  visit({record.lsn(), record.epoch(),
                         record.offset + kRecordHeaderBytes, record.payload});
            });
    return visited;
  }
  // ForceAll makes records durable, when the test wants it.
  absl::Status BeginForce(Lsn /*lsn*/) override { return absl::OkStatus(); }
  absl::Status OnDurable(
      Lsn /*lsn*/, std::function<void(const absl::Status&)> callback) override {
    waiting_.push_back(std::move(callback));
    return absl::OkStatus();
  }
  absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) override {
    callback(absl::OkStatus());
    return absl::OkStatus();
  }
  absl::Status CheckPayloads() const override { return absl::OkStatus(); }
  uint64_t free_bytes() const override { return harness_.log().free_bytes(); }
  absl::Status CleanupThrough(Lsn lsn) override {
    return harness_.log().CleanupThrough(lsn);
  }
  absl::StatusOr<std::unique_ptr<store::ObjectReader>> ReadFromHead() override {
    return std::make_unique<Reader>(harness_);
  }
  std::span<const std::byte> ring() const override {
    const Ring& ring = harness_.log().ring();
    return {ring.data(), ring.capacity()};
  }

  absl::Status ForceAll() {
    const Lsn last = harness_.log().next_lsn() - 1;
    if (waiting_.empty()) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(harness_.log().Force(last, 1, Deadline()));
    for (auto& callback : std::exchange(waiting_, {})) {
      callback(absl::OkStatus());
    }
    return absl::OkStatus();
  }

 private:
  class Reader final : public store::ObjectReader {
   public:
    explicit Reader(LogHarness& harness) : harness_(harness) {
      place_.lsn = harness.log().head_lsn();
    }
    absl::StatusOr<std::optional<store::PlacedRecord>> Next() override {
      ALPHEUS_ASSIGN_OR_RETURN(const bool any, harness_.log().CopyNext(place_));
      if (!any) return std::nullopt;
      return store::PlacedRecord{place_.copied_lsn, place_.epoch,
                                 place_.copied_offset, place_.payload};
    }

   private:
    LogHarness& harness_;
    TailPlace place_;
  };

  LogHarness& harness_;
  std::vector<std::function<void(const absl::Status&)>> waiting_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_CRASH_MODELLED_OBJECT_LOG_H_
