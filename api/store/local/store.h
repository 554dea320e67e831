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
//   STO2. What Get and Scan show is durable, of the log's latest epoch at some
//         moment of the call (P-O14), and was read while the ring was the
//         log's own.
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

  // Write one key. Durable on return. A write for which there is no room cleans
  // the log first; each other one does a small part of that.
  // Errors, with nothing written: InvalidArgument (key, size);
  // ResourceExhausted (the store is full). With an unknown outcome:
  // DeadlineExceeded; that of Engine::status(), after which each call fails.
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
  // Errors: as Log::ConfirmEpoch, Log::CheckPayloads and Engine::status.
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
  // Tells threads that the engine is to be polled. The log's callbacks share it
  // with the store, since some come when that is gone.
  class Bell {
   public:
    void Ring();
    uint64_t rings();
    // Waits for a ring after the first `seen`. Returns false at the deadline.
    bool Await(uint64_t seen, Deadline deadline);

   private:
    // The log's callbacks come while a thread has Store::mutex_, too.
    std::mutex mutex_;
    std::condition_variable rung_;
    uint64_t rings_ = 0;  // guarded by mutex_
  };
  // The end of an attempt to write.
  struct Attempt {
    absl::Status refusal;  // not OK: nothing was written, for want of room
    std::vector<Outcome> outcomes;
  };

  explicit Store(Log& log) : log_(log), object_log_(log) {}

  absl::Status Begin();
  absl::StatusOr<Attempt> TryWrite(const std::vector<Operation>& operations,
                                   Deadline deadline);
  // Waits until the log may take records again, which it refused with
  // DeadlineExceeded. Errors: DeadlineExceeded; the log's failure.
  absl::Status AwaitLog(Deadline deadline);
  // Cleans until a byte more is free. Returns false if nothing can be freed.
  absl::StatusOr<bool> Clean(Deadline deadline);
  absl::Status CheckAnswer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::span<std::byte>> Allocate(size_t bytes);

  Log& log_;
  OpenObjectLog object_log_;
  std::vector<std::unique_ptr<std::byte, FreeMemory>> memory_;  // of the index
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  Mutex mutex_;
  std::unique_ptr<Engine> engine_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Cleaner> cleaner_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_LOCAL_STORE_H_
