// SPDX-License-Identifier: Apache-2.0
// wal_follower: the WAL files of a log that another process has, as far as they
// are durable; what read-only and secondary instances of RocksDB read there.
//
// Idea: a tail of the log (ClusterTail; of a local one, LogReader) gives its
// records, which are copied and applied to an index of its own, as an opening
// applies what it recovers. Nothing is asked for, fenced or written: whoever
// has the log does not notice.
//
// Invariants:
//   WFR1. The files are those of one moment of the log, not older than the
//         Refresh that returned last, but for what is not known to be durable
//         yet (CT4 of cluster_tail.h, with fewer than W nodes; LR2 of
//         log_reader.h).
//   WFR2. They never become shorter than they were, but by what the log says:
//         what is durable stays (P-C1).
//   WFR3. A file that was found stays readable as long as somebody refers to
//         it, though the log has cleaned it.
//   WFR4. A log that cleaned records before they were read is read anew from
//         its head on; so is one of which much more was read than is likely to
//         be there, when a look begins, or on a Refresh while there is none
//         that is to be told (WFR5): files may have been removed without a
//         record (WST4, wal_store.h), or be kept for a look that never listed.
//   WFR5. A reader's look, from its Begin to its List, misses no file that was
//         there at a moment in between, nor any byte of one, but as in WFR1:
//         what loses its name meanwhile is kept (WIX4, wal_index.h). Where the
//         log was read anew since the Begin, some may have been missed, and
//         each List of the reader says so. The look ends with the reader's next
//         Begin, or when kListsMax lists were asked for, by anybody, since its
//         first one: who lists then sees the files that are there.
//   WFR6. What List returned to a look is found until that ends, if the log is
//         not read anew. It is not what is kept only for others, which may go
//         before.
//   WFR7. Where the log was read anew and has a file no more, who has it open
//         reads what was shown last, if that was there when he listed it. If it
//         may have grown in between, reading to its end is an error.
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

namespace alpheus {

// Where a follower's records come from.
class WalSource {
 public:
  // An error ends the reading.
  using Visit =
      std::function<absl::Status(Lsn lsn, std::span<const std::byte> payload)>;

  virtual ~WalSource() = default;

  // Shows the durable records from `from` on, or from the oldest (0), in LSN
  // order; returns from where to go on, 0 if that is not known. Errors:
  // OutOfRange (they were cleaned: read from the oldest); Unavailable (nobody
  // is in reach); DataLoss; whatever `visit` returns.
  virtual absl::StatusOr<Lsn> Read(Lsn from, const Visit& visit) = 0;
};

// Of a cluster's log, or of the region at WalOptions::log.path. Errors: as
// ClusterTail::Open and LogReader::Open; FailedPrecondition (a region that is
// one of several replicas: name the cluster).
absl::StatusOr<std::unique_ptr<WalSource>> OpenWalSource(
    const WalOptions& options);

class WalFollower {
 public:
  // A file, and what its bytes lie in.
  struct Followed {
    std::shared_ptr<const void> keeps;
    std::shared_ptr<WalFile> file;  // null: there is none
    uint64_t generation = 0;        // WFR7
  };

  // A reader that is gone does not keep files for ever.
  static constexpr uint64_t kListsMax = 16;

  explicit WalFollower(std::unique_ptr<WalSource> source)
      : source_(std::move(source)) {}

  // Takes in what the log has become since. Errors: as WalSource::Read, but
  // OutOfRange; as WalIndex::Apply and DecodeWalRecord. After an error the
  // files are those of before, or of some moment since.
  absl::Status Refresh();
  // The same; and begins a look of this reader, whoever that is, which ends the
  // one that it had (WFR5, WFR6).
  absl::Status Begin(const void* reader);
  // Names of the files in a directory ("" or "archive"), with "" those of the
  // reader's look, which has then listed. Errors: Unavailable (WFR5: begin
  // anew).
  absl::StatusOr<std::vector<std::string>> List(const void* reader,
                                                const std::string& directory);

  WalHome home() const;
  WalVouch vouch() const;
  Followed Find(const std::string& name) const;
  // The same file as it is now: it grows in what was read anew, too (WFR4). As
  // it was, if the log has it no more.
  Followed Latest(const Followed& followed) const;
  // Whether a file that is the latest may be shorter than it was shown (WFR7).
  bool MayHaveGrown(const Followed& followed) const;
  // As for a reader without a look.
  std::vector<std::string> List(const std::string& directory) const;
  // How often the log was read anew (WFR4).
  int restarts() const;

 private:
  // The files since the log was read from its head.
  struct Generation {
    WalIndex index;
    std::deque<std::pair<Lsn, std::vector<std::byte>>> records;
    Lsn next{0};
    uint64_t number = 0;       // of those that were shown
    uint64_t bytes = 0;        // of all records
    uint64_t first_bytes = 0;  // of those that the first reading found
    bool is_whole = false;     // it has come to its end
  };

  struct Look {
    uint64_t kept = 0;       // by the index, when it began
    uint64_t listed = 0;     // its first one, of all lists; 0: not yet
    bool is_broken = false;  // the log was read anew since
  };

  absl::Status ReadOn(bool may_shrink) ABSL_LOCKS_EXCLUDED(reading_, mutex_);
  // Looks are at what is shown.
  void Show(std::shared_ptr<Generation> generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What no look needs.
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadInto(Generation& generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reading_);
  // A record of a log, to be applied under mutex_.
  absl::Status Apply(Generation& generation, Lsn lsn,
                     std::span<const std::byte> payload)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops what no file refers to.
  void Trim(Generation& generation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lock order: reading_, then mutex_, which nobody holds while he waits for
  // nodes.
  Mutex reading_;
  const std::unique_ptr<WalSource> source_;
  // That is being read anew, as far as it was when a Refresh failed.
  std::shared_ptr<Generation> anew_ ABSL_GUARDED_BY(reading_);
  mutable Mutex mutex_;
  // Also what is in it.
  std::shared_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<Generation>();
  int restarts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<const void*, Look> looks_ ABSL_GUARDED_BY(mutex_);  // by reader
  uint64_t lists_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A file that somebody has open, for as long as he likes: it goes on with the
// log. Thread safety: Read concurrently.
class OpenFollowed {
 public:
  OpenFollowed(std::shared_ptr<const WalFollower> follower,
               WalFollower::Followed found)
      : follower_(std::move(follower)), latest_(std::move(found)) {}

  // As WalFile::Read. Errors: Unavailable (WFR7).
  absl::StatusOr<size_t> Read(uint64_t offset, std::span<std::byte> out);

 private:
  const std::shared_ptr<const WalFollower> follower_;
  Mutex mutex_;
  WalFollower::Followed latest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_FOLLOW_WAL_FOLLOWER_H_
