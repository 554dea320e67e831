// SPDX-License-Identifier: Apache-2.0
// wal_index: the WAL files of a log, by name: what its records say, applied one
// after the other.
//
// Idea: opening applies what was recovered, a running store what it has just
// written, by the same function; so what opening finds is what there was.
//
// Invariants:
//   WIX1. Ids rise with the LSN of their kCreate.
//   WIX2. The head passes the kCreate of a file only when the file is removed,
//         which need not be said by a record. So records of an id below every
//         kCreate that is left are remains of a removed file, and nothing but
//         those lacks one.
//   WIX3. The newest kHome is never behind the head while there is a file.
//   WIX4. From Keep on, a name that a file loses, as it is removed, renamed or
//         replaced, still finds it, unless another file has it by now, and is
//         listed for who asks for what was kept since. LetGoBefore ends that.
// Fault model: the log delivers an unbroken run of records; a run that breaks
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

namespace alpheus {

// Whose log it is. Absolute paths without symbolic links, or empty.
struct WalHome {
  std::string wal_directory;  // empty: there never was a WAL file
  std::string database;       // empty: not known yet

  bool operator==(const WalHome&) const = default;
};

// What log and directory both say, and so know each other by
// (directory_vouch.h).
struct WalVouch {
  std::string id;           // drawn; empty: the log does not vouch
  uint64_t generation = 0;  // rises with each opening

  bool operator==(const WalVouch&) const = default;
};

// The directory that the last take-over left (take_over.h).
struct WalLeft {
  std::string database;  // where it was; empty: it was never taken over
  WalVouch vouch;        // of the log then

  bool operator==(const WalLeft&) const = default;
};

class WalIndex {
 public:
  // `position` as in WalFile. The body must stay where it is while its file is
  // referred to.
  // Errors: DataLoss.
  absl::Status Apply(Lsn lsn, uint64_t position, const WalRecord& record);
  // The same of a kCreate whose file is there, and not recorded, so far.
  absl::Status ApplyCreate(Lsn lsn, uint64_t position, const WalRecord& record,
                           std::shared_ptr<WalFile> file);
  // As a kRemove does. Requires: the file has a name.
  void Forget(uint64_t id);

  // WIX4. Returns how many names were kept so far.
  uint64_t Keep();
  // All but those that were kept when there were so many.
  void LetGoBefore(uint64_t kept);

  // Null if there is none. Names are relative to the WAL directory.
  std::shared_ptr<WalFile> Find(const std::string& name) const;
  std::shared_ptr<WalFile> FindById(uint64_t id) const;
  // Names of the files in a directory ("" or "archive"), without it; also those
  // that were kept since Keep returned `since` (WIX4).
  std::vector<std::string> List(
      const std::string& directory,
      uint64_t since = std::numeric_limits<uint64_t>::max()) const;

  const WalHome& home() const { return home_; }
  const WalVouch& vouch() const { return vouch_; }
  const WalLeft& left() const { return left_; }
  Lsn home_lsn() const { return home_lsn_; }
  uint64_t next_id() const { return next_id_; }

  // The oldest file that has a name or a reader; null: none.
  std::shared_ptr<WalFile> Oldest();

 private:
  absl::Status ApplyHome(const WalRecord& record);
  // Of a file that is there.
  absl::Status ApplyTo(WalFile& file, Lsn lsn, const WalRecord& record);
  void Rename(uint64_t id, const std::string& name);

  struct Named {
    std::string name;
    std::shared_ptr<WalFile> file;
  };
  void KeepLost(const Named& lost);

  std::map<uint64_t, Named> by_id_;  // in order of age (WIX1)
  std::unordered_map<std::string, uint64_t> by_name_;
  std::vector<std::weak_ptr<WalFile>> removed_;  // that were referred to
  bool keeps_ = false;                           // WIX4
  std::deque<Named> kept_;
  uint64_t let_go_ = 0;  // how many were kept before those
  WalHome home_;
  WalVouch vouch_;
  WalLeft left_;
  Lsn home_lsn_;
  uint64_t next_id_ = 1;
  uint64_t first_created_ = 0;  // 0: none yet (WIX2)
};

// Of a name: "" or "archive", and the rest.
std::string DirectoryOf(const std::string& name);
std::string BaseNameOf(const std::string& name);

// Body of a kHome record, of version 1, 2 and 3.
std::string EncodeWalHome(const WalHome& home);
std::string EncodeWalHome(const WalHome& home, const WalVouch& vouch);
std::string EncodeWalHome(const WalHome& home, const WalVouch& vouch,
                          const WalLeft& left);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_INDEX_H_
