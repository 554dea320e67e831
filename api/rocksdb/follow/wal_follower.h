// SPDX-License-Identifier: Apache-2.0
// wal_follower: the durable part of the WAL files of another process's log;
// read by read-only and secondary instances of RocksDB.
//
// Idea: a tail of the log (ClusterTail; for a local one, LogReader) gives its
// records. They are copied and applied to an index of its own, as an opening
// applies recovered records. Nothing is promised, fenced or written, so the
// process that has the log does not notice.
//
// Invariants:
//   WFR1. The files are those of one moment of the log, not older than the last
//         Refresh that returned. Records that are not yet known to be durable
//         may be missing (CT4 of cluster_tail.h, with fewer than W nodes; LR2
//         of log_reader.h).
//   WFR2. Files become shorter only if the log says so: durable records stay
//         (P-C1).
//   WFR3. A file that was found stays readable while it is referred to, even if
//         the log has cleaned it.
//   WFR4. The log is read again from its head in two cases:
//         * It cleaned records before they were read.
//         * Much more was read than is likely still there. Files may have been
//           removed without a record (WST4, wal_store.h), or be kept for a view
//           that never listed. This is done when a view begins, or on a Refresh
//           while no view would fail by it (WFR5).
//   WFR5. A *view* of a reader lasts from its Begin to its List. It misses no
//         file that was there at some moment in between, nor any byte of one,
//         except as in WFR1. For that, a file that loses its name meanwhile is
//         kept (WIX4, wal_index.h). If the log was read again since the Begin,
//         files may be missing, and each List of the reader fails. A view ends
//         with the reader's next Begin. It also ends kListsMax lists, of any
//         readers, after its own first list; later lists show the present
//         files.
//   WFR6. A file that List returned to a view is found until the view ends,
//         unless the log is read again. List does not return files that are
//         kept only for other views, which may be dropped earlier.
//   WFR7. After the log was read again, an open file may be gone from it. Its
//         reader then reads the state that was shown last, if that was shown
//         when the reader listed the file. If the file may have grown in
//         between, reading to its end is an error.
// Thread safety: all members concurrently; one Refresh or Begin at a time.
// References: docs/use/rocksdb.md, "Following a log".
#ifndef ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWER_H_
#define ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/rocksdb/store/wal_file.h"
#include "api/rocksdb/store/wal_index.h"
#include "api/rocksdb/store/wal_options.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"

namespace alpheus::wal {

// Source of a follower's records.
class WalSource {
 public:
  // Called for each record; an error ends the reading.
  using Visit =
      std::function<absl::Status(Lsn lsn, std::span<const std::byte> payload)>;

  virtual ~WalSource() = default;

  // Shows the durable records from `from` on, or from the oldest (0), in LSN
  // order. Returns the LSN to continue at, 0 if unknown. Errors: OutOfRange
  // (they were cleaned: read from the oldest); Unavailable (no node can be
  // reached); DataLoss; any error of `visit`.
  virtual absl::StatusOr<Lsn> Read(Lsn from, const Visit& visit) = 0;
};

// Opens the source for a cluster's log, or for the region at
// WalOptions::log.path. Errors: as ClusterTail::Open and LogReader::Open;
// FailedPrecondition (a region that is one of several replicas: name the
// cluster).
absl::StatusOr<std::unique_ptr<WalSource>> OpenWalSource(
    const WalOptions& options);

class WalFollower {
 public:
  // File, and the owner of its bytes.
  struct Followed {
    std::shared_ptr<const void> keeps;
    std::shared_ptr<WalFile> file;  // null: there is none
    uint64_t generation = 0;        // WFR7
  };

  // Bound on lists per view: a reader that is gone does not keep files for
  // ever.
  static constexpr uint64_t kListsMax = 16;

  explicit WalFollower(std::unique_ptr<WalSource> source)
      : source_(std::move(source)) {}

  // Reads the new records of the log. Errors: as WalSource::Read, except
  // OutOfRange; as WalIndex::Apply and DecodeWalRecord. After an error the
  // files are as before, or as at some moment since.
  absl::Status Refresh();
  // Does a Refresh, and begins a view of `reader`, any key of the caller's;
  // ends the reader's earlier view (WFR5, WFR6).
  absl::Status Begin(const void* reader);
  // Returns the names of the files in a directory ("" or "archive"); with ""
  // those of the reader's view, which has then listed. Errors: Unavailable
  // (WFR5: begin again).
  absl::StatusOr<std::vector<std::string>> List(const void* reader,
                                                const std::string& directory);

  WalHome home() const;
  WalVouch vouch() const;
  Followed Find(const std::string& name) const;
  // Returns the present state of the same file, which also grows when the log
  // was read again (WFR4); `followed` itself if the log no longer has the file.
  Followed Latest(const Followed& followed) const;
  // Returns whether a file without a later state may have grown beyond it
  // (WFR7).
  bool MayHaveGrown(const Followed& followed) const;
  // Returns the names for a reader without a view.
  std::vector<std::string> List(const std::string& directory) const;
  // Returns how often the log was read again (WFR4).
  int restarts() const;

 private:
  // Files since the log was last read from its head.
  struct Generation {
    WalIndex index;
    std::deque<std::pair<Lsn, std::vector<std::byte>>> records;
    Lsn next{0};
    uint64_t number = 0;       // counts the generations shown
    uint64_t bytes = 0;        // of all records
    uint64_t first_bytes = 0;  // of the records of the first reading
    bool is_whole = false;     // the first reading is complete
  };

  struct ReaderView {
    uint64_t kept = 0;       // kept by the index when it began
    uint64_t listed = 0;     // number of its first list; 0: none yet
    bool is_broken = false;  // the log was read again since
  };

  absl::Status ContinueReading(bool may_shrink)
      ABSL_LOCKS_EXCLUDED(reading_, mutex_);
  // Shows the generation, which views refer to.
  void Show(std::shared_ptr<Generation> generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops the names that no view needs.
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadInto(Generation& generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  // Applies a record under mutex_.
  absl::Status Apply(Generation& generation, Lsn lsn,
                     std::span<const std::byte> payload)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops records that no file refers to.
  void Trim(Generation& generation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lock order: reading_, then mutex_, which is never held during a wait for
  // nodes.
  Mutex reading_;
  const std::unique_ptr<WalSource> source_;
  // Generation being read again, as far as it came when a Refresh failed.
  std::shared_ptr<Generation> rereading_ ABSL_GUARDED_BY(reading_);
  mutable Mutex mutex_;
  // Guards its content too.
  std::shared_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<Generation>();
  int restarts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<const void*, ReaderView> views_
      ABSL_GUARDED_BY(mutex_);  // by reader
  uint64_t lists_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Open file, which follows the log for as long as it is open. Thread safety:
// Read concurrently.
class OpenFollowed {
 public:
  OpenFollowed(std::shared_ptr<const WalFollower> follower,
               WalFollower::Followed found)
      : follower_(std::move(follower)), latest_(std::move(found)) {}

  // Reads as WalFile::Read does. Errors: Unavailable (WFR7).
  absl::StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out);

 private:
  const std::shared_ptr<const WalFollower> follower_;
  Mutex mutex_;
  WalFollower::Followed latest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWER_H_
