// SPDX-License-Identifier: Apache-2.0
// recovered_range: the recovery iterator of the paper's Table 2, checked.
//
// Idea: an iterator that merely ends at a bad record turns damage into a
// shorter log (P-H9, P-H11). This one runs to the recovered end exactly; if it
// can't, status() says so. If records were taken and status() is never read,
// the process aborts.
//
//   auto records = log->Recovered();
//   for (const alpheus::RecoveredRecord& record : records) Redo(record);
//   if (absl::Status status = records.status(); !status.ok()) return status;
//
// Thread safety: one thread per range; records in it must not be cleaned
// meanwhile.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_RECOVERED_RANGE_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_RECOVERED_RANGE_H_

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "log/base/ids.h"

namespace alpheus {

struct RecoveredRecord {
  Lsn lsn;
  Epoch epoch;                         // in which it was written
  std::span<const std::byte> payload;  // in the ring; valid until cleaned
  RingOffset offset = {};              // of the payload; see Log::ring
};

class RecoveredRange {
 public:
  // Source of the records, in LSN order. Internal.
  class Source {
   public:
    virtual ~Source() = default;
    // Gives the next record. Returns false at the end and on an error; status()
    // tells which.
    virtual bool Next(RecoveredRecord* record) = 0;
    virtual absl::Status status() const = 0;
    // Calls `visit` with each record until it fails. Returns its error, or
    // status().
    virtual absl::Status ForEach(
        const std::function<absl::Status(const RecoveredRecord&)>& visit) = 0;
  };

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = RecoveredRecord;
    using difference_type = std::ptrdiff_t;
    using pointer = const RecoveredRecord*;
    using reference = const RecoveredRecord&;

    Iterator() = default;
    reference operator*() const { return record_; }
    pointer operator->() const { return &record_; }
    Iterator& operator++() {
      if (!source_->Next(&record_)) source_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const {
      return source_ == other.source_;
    }

   private:
    friend class RecoveredRange;
    explicit Iterator(Source* source) : source_(source) { ++*this; }

    Source* source_ = nullptr;  // nullptr: at the end
    RecoveredRecord record_;
  };

  explicit RecoveredRange(std::unique_ptr<Source> source)
      : source_(std::move(source)) {}
  RecoveredRange(RecoveredRange&& other) noexcept
      : source_(std::move(other.source_)),
        status_was_read_(std::exchange(other.status_was_read_, true)) {}
  // Aborts the process if records were taken and status() was never read,
  // unless an exception is in flight.
  ~RecoveredRange();

  // Starts the one pass that the range allows.
  Iterator begin() {
    status_was_read_ = false;
    return Iterator(source_.get());
  }
  Iterator end() { return {}; }

  // Returns OK if all records up to the recovered end were delivered without an
  // error; DataLoss otherwise.
  [[nodiscard]] absl::Status status() {
    status_was_read_ = true;
    return source_->status();
  }

 private:
  std::unique_ptr<Source> source_;
  bool status_was_read_ = true;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_RECOVERED_RANGE_H_
