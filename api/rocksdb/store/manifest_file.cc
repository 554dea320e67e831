// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/manifest_file.h"

#include <utility>

#include "absl/strings/match.h"
#include "api/rocksdb/store/wal_io_status.h"

namespace alpheus::wal {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class ManifestFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  ManifestFile(std::shared_ptr<WalStore> store,
               std::unique_ptr<rocksdb::FSWritableFile> base)
      : FSWritableFileOwnerWrapper(std::move(base)), store_(std::move(store)) {}

  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return Confirmed(FSWritableFileOwnerWrapper::Sync(options, dbg));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return Confirmed(FSWritableFileOwnerWrapper::Fsync(options, dbg));
  }

 private:
  // After the sync: before it, the log could be lost in between.
  IOStatus Confirmed(IOStatus synced) {
    if (!synced.ok()) return synced;
    return ToIoStatus(store_->ConfirmPrimary());
  }

  const std::shared_ptr<WalStore> store_;
};

}  // namespace

bool IsManifestName(const std::string& base_name) {
  return absl::StartsWith(base_name, "MANIFEST-");
}

std::unique_ptr<rocksdb::FSWritableFile> NewManifestFile(
    std::shared_ptr<WalStore> store,
    std::unique_ptr<rocksdb::FSWritableFile> base) {
  return std::make_unique<ManifestFile>(std::move(store), std::move(base));
}

}  // namespace alpheus::wal
