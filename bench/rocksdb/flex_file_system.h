// SPDX-License-Identifier: Apache-2.0
// flex_file_system: RocksDB's FileSystem with WAL files in a FLEX region; the
// interface of Alpheus' plugin, for the baseline.
//
// Idea: it supports what the benchmark's databases do with WAL files: make,
// append, sync, list, read, remove. Renaming, linking and truncating are
// refused, so nothing is lost silently. For any folder, one database at a time.
//
// Thread safety: as RocksDB's FileSystem, except for reading (flex_store.h).
#ifndef ALPHEUS_BENCH_ROCKSDB_FLEX_FILE_SYSTEM_H_
#define ALPHEUS_BENCH_ROCKSDB_FLEX_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "bench/rocksdb/flex_store.h"
#include "rocksdb/file_system.h"

namespace alpheus::bench::wal {

class FlexFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using IODebugContext = rocksdb::IODebugContext;

  explicit FlexFileSystem(std::shared_ptr<FlexStore> store);

  const char* Name() const override { return "FlexFileSystem"; }

  IOStatus NewSequentialFile(const std::string& path,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* dbg) override;
  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus GetChildren(const std::string& directory, const IOOptions& options,
                       std::vector<std::string>* result,
                       IODebugContext* dbg) override;
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override;
  IOStatus GetFileSize(const std::string& path, const IOOptions& options,
                       uint64_t* size, IODebugContext* dbg) override;
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override;
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override;
  IOStatus Truncate(const std::string& path, size_t size,
                    const IOOptions& options, IODebugContext* dbg) override;

 private:
  // Returns the file; null: no WAL file of the region.
  std::shared_ptr<FlexLog> Find(const std::string& path) const;

  const std::shared_ptr<FlexStore> store_;
};

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_FLEX_FILE_SYSTEM_H_
