// SPDX-License-Identifier: Apache-2.0
// wal_file_checker: checks that a log that RocksDB's plugin writes still has
// the WAL files that RocksDB needs.
//
// Idea: history.h judges records; a database judges files. This checker knows
// the data put into each file, the synced part, and the order of the files. It
// computes the files from the records that an opening shows, by a separate
// implementation that is as simple as possible.
//
// Checked (WST1 and WST2 of api/rocksdb/store/wal_store.h):
//   WST1  a file has all its synced data, unless its removal has begun
//   WST2  a file is a prefix of the data written to it. If a newer file has
//         data, all older ones that were not removed exist, with all data
//         accepted for them. If two synced files are removed, the one removed
//         later is not gone while the other one exists. The plugin's own index
//         agrees
// Files of one id that different primaries made are different files.
// Thread safety: one thread.
// References: api/rocksdb/store/wal_store.h; docs/verify/simulation.md.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_WAL_FILE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_WAL_FILE_CHECKER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "tools/sim/world/history.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

class WalFileChecker {
 public:
  explicit WalFileChecker(Oracle& oracle) : oracle_(oracle) {}

  // Note a primary's operations on a file of that id, each before its record
  // may be found.
  void Creates(PrimaryNumber primary, uint64_t id, OperationId operation);
  void Writes(PrimaryNumber primary, uint64_t id, OperationId operation,
              uint64_t offset, uint64_t bytes);
  void Removes(PrimaryNumber primary, uint64_t id);
  void RemovesBy(PrimaryNumber primary, uint64_t id, OperationId operation);
  // Notes that the database has put `bytes` bytes into it, which may still be
  // in a buffer.
  void Accepted(PrimaryNumber primary, uint64_t id, uint64_t bytes);
  // Notes that a sync has returned: `size` bytes of it are durable.
  void Synced(PrimaryNumber primary, uint64_t id, uint64_t size);

  // Notes that the primary begins to open; it may not know later syncs.
  void Opens(PrimaryNumber primary);
  // Judges an opening: the records shown, and the size of each file by its id,
  // as the plugin finds them.
  void Opened(PrimaryNumber primary, std::span<const History::Shown> records,
              const std::map<uint64_t, uint64_t>& index);

 private:
  struct FileId {
    PrimaryNumber writer = 0;
    uint64_t id = 0;
    auto operator<=>(const FileId&) const = default;
  };
  struct File {
    uint64_t accepted = 0;
    uint64_t synced = 0;
    PrimaryNumber remover = 0;  // 0: nobody
    uint64_t removal = 0;       // counts removals of all files
  };
  enum class Change { kCreate, kData, kRemove };
  struct Record {
    Change change = Change::kCreate;
    FileId file;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  struct Found {
    FileId file;
    uint64_t size = 0;
  };
  using FoundFiles = std::map<uint64_t, Found>;  // by id: the oldest first

  static std::string Name(const FileId& file);
  // Returns the file that the primary knows by that id.
  FileId Known(PrimaryNumber primary, uint64_t id) const;
  bool Apply(const Record& record, FoundFiles& found);
  void JudgeSynced(PrimaryNumber primary, const FoundFiles& found);
  void JudgeOrder(const FoundFiles& found);
  void JudgeRemovals(PrimaryNumber primary, const FoundFiles& found);
  void Violate(const char* invariant, const std::string& what);

  Oracle& oracle_;
  std::map<FileId, File> files_;
  std::map<OperationId, Record> records_;
  // Files that each primary found and has made since; size: as found.
  std::map<PrimaryNumber, FoundFiles> known_;
  std::map<PrimaryNumber, std::map<FileId, uint64_t>> synced_before_;
  uint64_t removals_ = 0;
  PrimaryNumber judged_ = 0;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_WAL_FILE_CHECKER_H_
