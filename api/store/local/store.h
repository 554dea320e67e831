// SPDX-License-Identifier: Apache-2.0
// store: a store of this process, by calls that block.
//
// Idea: many threads share one engine (engine.h), under a lock that is held to
// submit, to append and to poll, and never while a thread waits for the log.
//
//   auto log = Log::Open({.path = "objects"});
//   auto store = Store::Open(**log);
//   auto put = (*store)->Put("key", "value");    // durable when it returns
//   auto value = (*store)->Get("key");
//
// Invariants:
//   STO1. A Put, Delete or Write that returned OK survives whatever a record of
//         the log does (LG1 of log.h).
//   STO2. What Get and Scan show is durable, and of the log's latest epoch at
//         some moment of the call (P-O14).
// Thread safety: all members concurrently, but the destructor.
// References: docs/design/object_store.md.
#ifndef ALPHEUS_API_STORE_LOCAL_STORE_H_
#define ALPHEUS_API_STORE_LOCAL_STORE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "api/store/engine/cleaner.h"
#include "api/store/engine/engine.h"
#include "api/store/engine/open_object_log.h"
#include "log/base/deadline.h"
#include "log/base/mutex.h"

namespace alpheus::store {

class Store {
 public:
  // Reads the objects of an open log, which must outlive the store, and to
  // which nothing else is appended. Errors: as Engine::Recover.
  static absl::StatusOr<std::unique_ptr<Store>> Open(Log& log);
  // Requires: no call is under way.
  ~Store();

  // Write one key. Durable on return. Errors, with nothing written:
  // InvalidArgument (key, size), ResourceExhausted (the log is full); the log's
  // failure, DeadlineExceeded (outcome unknown).
  absl::StatusOr<Outcome> Put(std::string_view key, std::string_view value,
                              Condition condition = {}, Deadline deadline = {});
  absl::StatusOr<Outcome> Delete(std::string_view key, Condition condition = {},
                                 Deadline deadline = {});
  // Does all operations or none, each on a key of its own. Errors: as Put.
  absl::StatusOr<std::vector<Outcome>> Write(
      const std::vector<Operation>& operations, Deadline deadline = {});

  struct Value {
    std::string bytes;
    Version version = 0;
  };
  // Returns the newest durable version; nothing if the key is not there.
  // Errors: as Log::ConfirmEpoch.
  absl::StatusOr<std::optional<Value>> Get(std::string_view key,
                                           Deadline deadline = {});

  struct Entry {
    std::string key;
    Value value;
  };
  // Returns some objects from `cursor` on, in no order that means anything, and
  // the next cursor; 0 both to begin and at the end. A key that is there
  // throughout is shown at least once. Errors: as Get.
  struct Page {
    std::vector<Entry> entries;
    uint64_t next = 0;
  };
  absl::StatusOr<Page> Scan(uint64_t cursor, Deadline deadline = {});

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const;
  };

  explicit Store(Log& log) : log_(log), object_log_(log) {}

  absl::Status Begin();
  absl::StatusOr<std::vector<Outcome>> TryWrite(
      const std::vector<Operation>& operations, Deadline deadline);
  // Makes a step of cleaning. Returns false if it freed nothing.
  absl::StatusOr<bool> CleanSome();
  absl::StatusOr<std::span<std::byte>> Allocate(size_t bytes);
  void NoteNews();
  uint64_t news_count();
  // Waits for news after the first `seen`. Returns false at the deadline.
  bool AwaitNews(uint64_t seen, Deadline deadline);

  Log& log_;
  OpenObjectLog object_log_;
  std::vector<std::unique_ptr<std::byte, FreeMemory>> memory_;  // of the index
  Mutex mutex_;
  std::unique_ptr<Engine> engine_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Cleaner> cleaner_ ABSL_GUARDED_BY(mutex_);
  // The log's callbacks come while a thread has mutex_, too.
  std::mutex news_mutex_;
  std::condition_variable news_;  // the engine is to be polled
  uint64_t news_count_ = 0;       // guarded by news_mutex_
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_LOCAL_STORE_H_
