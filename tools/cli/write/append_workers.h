// SPDX-License-Identifier: Apache-2.0
// append_workers: threads that append numbered records side by side.
//
// Record i goes to worker i mod N through a bounded queue, so records of one
// worker keep their order in the log, and records of different workers race,
// as those of an application's threads do.
//
// Invariants:
//   AW1. A queue never holds more than kRecordsMax records, nor more than
//        kBytesMax bytes unless it holds one record only. With acknowledgements
//        it holds a few: they would be appended one by one before the log can
//        be given back.
//   AW2. An acknowledgement is written only after its record is durable.
//   AW3. After the first failure nothing new is appended.
//   AW4. If each record is to be forced, and acknowledgements are off, a worker
//        forces together the records that waited in its queue. A lone record
//        waits for no other. With acknowledgements each thread has one record
//        in flight.
// Thread safety: one thread calls the members of AppendWorkers.
#ifndef ALPHEUS_TOOLS_CLI_WRITE_APPEND_WORKERS_H_
#define ALPHEUS_TOOLS_CLI_WRITE_APPEND_WORKERS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "alpheus/log.h"
#include "log/base/mutex.h"

namespace alpheus::cli {

struct NumberedRecord {
  uint64_t index = 0;
  std::string payload;
};

// Hands records from one thread to another, in order.
class RecordQueue {
 public:
  static constexpr size_t kRecordsMax = 1024;

  explicit RecordQueue(size_t records_max = kRecordsMax)
      : records_max_(records_max) {}

  // Waits for room. Returns false after Cancel: the record was not taken.
  bool Push(NumberedRecord record);
  // Takes all queued records; waits for the first one. Returns false when no
  // more will come.
  bool PopAll(std::deque<NumberedRecord>* records);
  // Ends the input: no more Push. PopAll still returns the queued records.
  void End();
  // Drops the queued records and ends both sides.
  void Cancel();

 private:
  static constexpr size_t kBytesMax = 4 << 20;

  // Requires: mutex_ held.
  bool HasRoomOrIsCancelled() const;
  bool HasRecordsOrEnded() const;

  const size_t records_max_;
  // A std::mutex, for the condition variable. Guards all fields below.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<NumberedRecord> records_;
  size_t bytes_ = 0;  // payloads in records_
  bool ended_ = false;
  bool cancelled_ = false;
};

// Returns how many records of the input are in the log, as a sentence. Its
// first record has LSN `begin`, `next` is the next LSN, and nobody else writes.
// Records after `durable` may exist after the next opening. `cat` is the
// command that shows it.
std::string WhatIsInTheLog(const std::string& cat, Lsn begin, Lsn durable,
                           Lsn next);

struct AppendWorkersOptions {
  int threads = 1;
  uint32_t frequency = 1;  // of ForceOptions
  // Descriptor that gets "<lsn> <record index> <thread>" for each durable
  // record, by one write(2) each; -1: none.
  int ack_fd = -1;
  std::string when_full;     // remedy then; part of a sentence
  uint64_t first_index = 0;  // of the first record
  // Event descriptor that becomes readable when a worker has failed, in place
  // of one of its own; -1: none.
  int failure_fd = -1;
};

class AppendWorkers {
 public:
  // `log` must outlive the workers.
  AppendWorkers(Log* log, const AppendWorkersOptions& options);
  ~AppendWorkers();

  // Passes on the next record. Returns false when a worker has failed; Finish
  // returns the reason.
  bool Push(std::string payload);

  // Descriptor that becomes readable when a worker has failed, so that a caller
  // stops waiting for input.
  int failure_fd() const {
    return options_.failure_fd >= 0 ? options_.failure_fd : failure_fd_;
  }
  // Returns the index of the next record.
  uint64_t next_index() const { return next_index_; }
  // Returns true once a worker has failed. Finish returns the reason.
  bool has_failed();

  // Waits until all records are appended, forces them, and writes the due
  // acknowledgements. Called once.
  // Errors: the first failure, with the index of its record, counted from 0;
  // for records forced together, of the first that is not durable. The error of
  // the last force.
  absl::Status Finish();

 private:
  struct Appended {
    Lsn lsn;
    uint64_t index;
  };
  struct Worker {
    explicit Worker(size_t records_max) : queue(records_max) {}

    RecordQueue queue;
    // Owned by the worker's thread.
    std::deque<Appended> unacknowledged;
    std::deque<Appended> unforced;  // AW4
    std::thread thread;
  };

  bool is_forced_together() const {
    return options_.frequency == 1 && options_.ack_fd < 0;
  }
  void Work(int worker_index);
  absl::Status AppendOne(int worker_index, const NumberedRecord& record);
  // Forces all records that the worker has appended and not forced. `index`: on
  // failure, that of the first that is not durable.
  absl::Status ForceTogether(int worker_index, uint64_t* index);
  absl::Status Acknowledge(int worker_index);
  void Fail(uint64_t record_index, const absl::Status& status);
  void Join();
  absl::Status ForceAll();

  Log& log_;
  const AppendWorkersOptions options_;
  uint64_t next_index_;
  std::vector<std::unique_ptr<Worker>> workers_;

  const int failure_fd_;
  Mutex failure_mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(failure_mutex_);
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_WRITE_APPEND_WORKERS_H_
