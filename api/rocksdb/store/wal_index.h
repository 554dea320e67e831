// SPDX-License-Identifier: Apache-2.0
// wal_index: the WAL files of a log by name, from its records applied in order.
//
// Idea: an opening applies recovered records, and a running store its own new
// records, by the same function. So an opening finds the files that the store
// had.
//
// Invariants:
//   WIX1. Ids rise with the LSN of their kCreate.
//   WIX2. The head passes the kCreate of a file only when the file is removed,
//         possibly without a record. So records with an id below every kCreate
//         that is left are remains of a removed file, and only those may lack a
//         kCreate.
//   WIX3. The newest kHome is never before the head while there is a file.
//   WIX4. After Keep, a name that a file loses (removed, renamed or replaced)
//         still finds that file, unless another file has the name. List shows
//         it to callers that ask for files kept since then. LetGoBefore ends
//         that.
// Fault model: the log delivers an unbroken run of records. A run that breaks
// WIX1 or WF1 (wal_file.h) was not written by a store, and is DataLoss.
// Thread safety: one thread at a time.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_INDEX_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_INDEX_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "api/rocksdb/store/wal_file.h"
#include "api/rocksdb/store/wal_record.h"
#include "log/base/ids.h"

namespace alpheus::wal {

// The database to which the log belongs. Absolute paths without symbolic links,
// or empty.
struct WalHome {
  std::string wal_directory;  // empty: never had a WAL file
  std::string database;       // empty: not known yet

  bool operator==(const WalHome&) const = default;
};

// Values in both log and directory, by which they identify each other
// (directory_vouch.h).
struct WalVouch {
  std::string id;           // drawn; empty: the log does not vouch
  uint64_t generation = 0;  // rises with each opening

  bool operator==(const WalVouch&) const = default;
};

// Directory that the last take-over left (take_over.h).
struct WalLeft {
  std::string database;  // old place; empty: never taken over
  WalVouch vouch;        // of the log at that time

  bool operator==(const WalLeft&) const = default;
};

class WalIndex {
 public:
  // Applies a record. `position` as in WalFile. The body must stay in place
  // while its file is referred to.
  // Errors: DataLoss.
  absl::Status Apply(Lsn lsn, uint64_t position, const WalRecord& record);
  // Applies a kCreate whose file exists and is not recorded so far.
  absl::Status ApplyCreate(Lsn lsn, uint64_t position, const WalRecord& record,
                           std::shared_ptr<WalFile> file);
  // Removes a file as a kRemove does. Requires: the file has a name.
  void Forget(uint64_t id);

  // Begins to keep lost names (WIX4). Returns the number kept so far.
  uint64_t Keep();
  // Drops all names except those kept after the first `kept`.
  void LetGoBefore(uint64_t kept);

  // Return a file, or null. Names are relative to the WAL directory.
  std::shared_ptr<WalFile> Find(const std::string& name) const;
  std::shared_ptr<WalFile> FindById(uint64_t id) const;
  // Returns the names of the files in a directory ("" or "archive"), without
  // it; also those kept since Keep returned `since` (WIX4).
  std::vector<std::string> List(
      const std::string& directory,
      uint64_t since = std::numeric_limits<uint64_t>::max()) const;

  const WalHome& home() const { return home_; }
  const WalVouch& vouch() const { return vouch_; }
  const WalLeft& left() const { return left_; }
  Lsn home_lsn() const { return home_lsn_; }
  uint64_t next_id() const { return next_id_; }

  // Returns the oldest file that has a name or a reader; null: none.
  std::shared_ptr<WalFile> Oldest();

 private:
  absl::Status ApplyHome(const WalRecord& record);
  // Applies a record of an existing file.
  absl::Status ApplyTo(WalFile& file, Lsn lsn, const WalRecord& record);
  void Rename(uint64_t id, const std::string& name);

  struct Named {
    std::string name;
    std::shared_ptr<WalFile> file;
  };
  void KeepLost(const Named& lost);

  std::map<uint64_t, Named> by_id_;  // in order of age (WIX1)
  std::unordered_map<std::string, uint64_t> by_name_;
  std::vector<std::weak_ptr<WalFile>> removed_;  // still referred to at removal
  bool keeps_ = false;                           // WIX4
  std::deque<Named> kept_;
  uint64_t let_go_ = 0;  // number dropped before those
  WalHome home_;
  WalVouch vouch_;
  WalLeft left_;
  Lsn home_lsn_;
  uint64_t next_id_ = 1;
  uint64_t first_created_ = 0;  // 0: none yet (WIX2)
};

// Split a name: "" or "archive", and the rest.
std::string DirectoryOf(const std::string& name);
std::string BaseNameOf(const std::string& name);

// Return the body of a kHome record of version 1, 2 and 3.
std::string EncodeWalHome(const WalHome& home);
std::string EncodeWalHome(const WalHome& home, const WalVouch& vouch);
std::string EncodeWalHome(const WalHome& home, const WalVouch& vouch,
                          const WalLeft& left);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_INDEX_H_
