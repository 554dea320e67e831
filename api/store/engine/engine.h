// SPDX-License-Identifier: Apache-2.0
// engine: the state machine of one store: judges requests, appends what they
// ask, and shows it once it is durable.
//
// Idea: a record is appended first, and becomes visible later. Requests are
// judged by the newest version of a key, visible or not; readers see durable
// ones only:
//
//   Submit     Submit     Append                   the record is durable
//   PUT k=1    PUT k=2    one record of both       readers see k=2
//   ------------------------------------------------------------------> time
//              judged by k=1 (pending)
//
// All that is submitted between two calls of Append becomes one record: one sum
// and one fence serve many clients, and a request of several operations is
// whole or not at all.
//
// Invariants:
//   ENG1. The index names durable records only (P-O1).
//   ENG2. Versions of a key become visible in the order in which they were
//         judged, which is that of the log.
//   ENG3. An answer that appended nothing (a condition that does not hold, a
//         key that is not there) is given once all that it was judged by is
//         durable, and the epoch was confirmed after the request came (P-E20).
//   ENG4. Keys and values of a request are read once each (P-E18).
//   ENG5. Recovering from the log's records makes the same index.
//   ENG6. A copy is appended only while its original is the newest version of
//         its key, shown or not (P-E16).
//   ENG7. Puts and deletions leave the room that they must (room.h).
// Thread safety: one thread at a time; the log's callbacks come on any.
// Crash states: all that is on media is the log's.
// References: docs/design/object_store.md.
#ifndef ALPHEUS_API_STORE_ENGINE_ENGINE_H_
#define ALPHEUS_API_STORE_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/engine/news.h"
#include "api/store/engine/object_log.h"
#include "api/store/engine/room.h"
#include "api/store/index/index.h"
#include "api/store/index/slot.h"
#include "api/store/record/object.h"
#include "log/base/ids.h"

namespace alpheus::store {

// Version of a key: grows with each put, and lasts as long as what was put; 0:
// the key is not there.
using Version = uint64_t;

// A condition of an operation, on the newest version of its key.
struct Condition {
  enum class Kind { kAlways, kAbsent, kPresent, kVersion };
  Kind kind = Kind::kAlways;
  Version version = 0;  // kVersion; 0: the key is not there
};

struct Operation {
  enum class Kind { kPut, kDelete };
  Kind kind = Kind::kPut;
  std::span<const std::byte> key;
  std::span<const std::byte> value = {};  // kPut
  Condition condition = {};
};

// The end of an operation.
struct Outcome {
  // False: the condition of some operation of the request did not hold, or
  // there was nothing to delete.
  bool is_done = false;
  // Version that the operation made; if it is not done, the newest one.
  Version version = 0;

  bool operator==(const Outcome&) const = default;
};

class Engine {
 public:
  // Called once. `outcomes`: one for each operation, with OK. Errors, with
  // nothing written: InvalidArgument; ResourceExhausted (no room, or too many
  // live objects); DeadlineExceeded (the log takes nothing now). With an
  // unknown outcome: that of status().
  using Done = std::function<void(const absl::Status& status,
                                  const std::vector<Outcome>& outcomes)>;

  struct Options {
    Index::Allocate allocate;
    uint64_t hash_seed = 0;
    // Called, on any thread, when Poll has something to do.
    std::function<void()> wake = [] {};
  };

  // Makes the index of what the log has. Errors: DataLoss, FailedPrecondition,
  // Unimplemented (records that this store does not write); FailedPrecondition
  // (a ring below Room::kRingBytesMin); ResourceExhausted (memory); as
  // ForEachRecovered. `log` must outlive the engine; its callbacks may come
  // later, and call `wake` even then.
  static absl::StatusOr<std::unique_ptr<Engine>> Recover(ObjectLog& log,
                                                         Options options);

  // ---- Requests

  // Takes a request of at least one operation, each on a key of its own. If a
  // condition does not hold, none of them is done. Values must stay until
  // Append returns. May call `done`, as Append and Poll may.
  void Submit(const std::vector<Operation>& operations, Done done);
  // Appends what was submitted, and begins to force it. Returns the LSN of the
  // last record; 0: nothing was appended.
  Lsn Append();
  // Shows what has become durable, and answers. Returns true if it did
  // anything.
  bool Poll();
  // Returns why nothing is done any more: the log's failure; ResourceExhausted
  // (no memory for the index: a record is durable that it does not show). The
  // store must be opened again.
  const absl::Status& status() const { return failure_; }
  // Returns whether all requests were answered.
  bool is_idle() const {
    return submitted_.empty() && records_.empty() && unappended_.empty();
  }

  // ---- Cleaning

  struct Copies {
    size_t count = 0;
    uint64_t bytes = 0;
  };
  using CopyDone = std::function<void(const absl::Status& status)>;
  // Submits copies of those objects of a durable record that are the newest of
  // their keys, durable or not. `done` is called once for each: by Append or
  // Poll, when the copy, or what is newer, is durable. Errors as those of Done.
  // The payload must stay until Append returns. Requires: the record's LSN is
  // at most shown_lsn(). Errors: DataLoss (no record of a store); status().
  // Then some copies may be submitted.
  absl::StatusOr<Copies> CopyForward(const PlacedRecord& record,
                                     const CopyDone& done);
  // Returns the LSN of the last record that the index was made of.
  Lsn shown_lsn() const { return shown_lsn_; }
  // Returns how many bytes the newest objects of all keys take, as copies.
  uint64_t live_bytes() const { return live_.bytes; }
  // Returns how many bytes of the ring are in use, and no newest object's.
  uint64_t garbage_bytes() const;

  // ---- Readers

  struct Found {
    std::span<const std::byte> value;  // in the ring
    Version version = 0;
  };
  // Returns the newest durable version of a key. Before an answer goes to a
  // client the epoch must be confirmed after the client asked (P-O14), and the
  // log must say that the ring was its own (ObjectLog::CheckPayloads).
  std::optional<Found> Get(std::span<const std::byte> key) const;
  // As Index::Scan, of whole objects.
  std::optional<uint64_t> Scan(
      uint64_t cursor, absl::FunctionRef<void(std::span<const std::byte> key,
                                              const Found& found)>
                           visit) const;
  size_t size() const { return index_->size(); }

 private:
  static constexpr size_t kNoChange = ~size_t{0};

  // Bytes of objects as copies, and how many objects have never been copied.
  struct Live {
    uint64_t bytes = 0;
    uint64_t originals = 0;

    void Replace(const Live& before, const Live& after) {
      bytes += after.bytes - before.bytes;
      originals += after.originals - before.originals;
    }
    // Returns by how many bytes the first copies will be longer.
    uint64_t owed() const { return originals * sizeof(Version); }
  };
  static Live LiveOf(const Object& object);

  // The newest version of a key: in the index, in a record that is not durable
  // yet, or in the record that is being made (then its version is not known).
  struct Newest {
    bool is_there = false;
    Version version = 0;
    Live live = {};
    uint64_t record = 0;  // number of the record that it is in; 0: durable
    // In the record that is being made: which of its changes.
    size_t change = kNoChange;
  };
  using NewestByKey = absl::flat_hash_map<std::string, Newest>;

  // One operation, with its own copy of the key.
  struct Asked {
    std::string key;
    uint64_t hash = 0;
    bool is_put = false;
    std::span<const std::byte> value = {};
    Condition condition = {};
  };
  struct Submitted {
    std::vector<Asked> operations;
    Done done;
    // The original of a copy, and where it lies.
    std::optional<Object> kept = {};
    Slot original = {};
  };
  // A change that a record makes to a key.
  struct Change {
    std::string key;
    uint64_t hash = 0;
    // The bytes to write, without the key. The spans end when it is appended.
    Object object = {};
    Slot original = {};  // of a copy
    Slot slot = {};
    Version version = 0;
  };
  // A request that was judged, and waits for its answer.
  struct Judged {
    Done done;
    std::vector<Outcome> outcomes = {};
    // From which each outcome has its version.
    std::vector<size_t> changes = {};
    uint64_t judged_by = 0;  // newest record that it knows; 0: durable ones
    bool appends = false;
    bool needs_confirmation = true;  // of one that does not append
    uint64_t confirmation = 0;       // that it waits for
  };
  // A record: being made, or not durable yet.
  struct Record {
    uint64_t number = 0;
    Lsn lsn = {};
    size_t bytes = 0;  // of its payload
    std::vector<Change> changes = {};
    std::vector<Judged> judged = {};
    NewestByKey newest = {};
    // All newest objects, once it is appended.
    Live live = {};
  };

  Engine(ObjectLog& log, Options options);

  absl::Status Rebuild();
  absl::Status RecoverRecord(const PlacedRecord& record);
  absl::Status RecoverObject(Slot slot, const Object& object);
  absl::Status Check(const std::vector<Operation>& operations) const;
  absl::Status CheckKeys(const std::vector<Asked>& operations) const;
  // Adds a request to the record, or answers that it has no room in the ring.
  // Returns false, with nothing changed, if the record has no room for it.
  bool AddTo(Record& record, Submitted& request);
  // The same for a copy.
  bool AddCopyTo(Record& record, Submitted& request);
  void AddChange(Record& record, Change change, const Newest& before);
  bool HasRoomFor(const Record& record, uint64_t objects_bytes) const;
  // ENG7.
  absl::Status CheckRoom(const Record& record, const Live& live, size_t bytes,
                         bool has_put) const;
  bool Holds(const Condition& condition, const Newest& newest) const;
  Newest NewestOf(const Record& record, const std::string& key,
                  uint64_t hash) const;
  Lsn AppendRecord(Record record);
  void FillIn(Record& record, RingOffset offset, std::span<std::byte> payload);
  void BeginForce(Record& record, const PlacedRecord& placed);
  void Confirm(std::vector<Judged> judged);
  void Show(Record& record);
  void Fail(const absl::Status& failure);

  uint64_t HashOf(std::span<const std::byte> key) const;
  // Returns the offset that a slot names.
  uint64_t OffsetOf(Slot slot) const;
  // Returns the object that a slot names; one without a key if the ring is
  // another process's by now.
  Object ObjectAt(Slot slot) const;
  Version VersionOf(Slot slot, const Object& object) const;
  bool HasKey(Slot slot, std::span<const std::byte> key) const;
  std::optional<Slot> Find(std::span<const std::byte> key, uint64_t hash) const;

  ObjectLog& log_;
  const Options options_;
  const std::shared_ptr<News> news_;
  const Room room_;
  std::optional<Index> index_;
  Live live_;         // of the newest objects, shown or not
  uint64_t end_ = 0;  // offset behind the newest object; see OffsetOf
  Lsn shown_lsn_;
  absl::Status failure_;

  std::vector<Submitted> submitted_;
  uint64_t last_record_ = 0;    // number of the last one that was appended
  uint64_t durable_ = 0;        // number of the last one that is durable
  std::deque<Record> records_;  // appended, and not durable
  NewestByKey newest_;          // of these
  uint64_t last_confirmation_ = 0;
  std::vector<Judged> unappended_;  // wait for a confirmation
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_ENGINE_ENGINE_H_
