// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/folder_wal.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/rocksdb/flex_store.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

using replicated::ScratchFolder;

class FolderWal final : public Contestant {
 public:
  FolderWal(std::string name, std::string kind, ScratchFolder folder,
            uint64_t region_bytes)
      : name_(std::move(name)),
        folder_(std::move(folder)),
        location_{.kind = std::move(kind),
                  .folder = folder_.path(),
                  .region_bytes = region_bytes} {}

  std::string name() const override { return name_; }

  absl::StatusOr<Place> Begin() override {
    if (opened_.has_value()) return opened_->place;
    return TakeBack();
  }

  absl::StatusOr<Location> Finish() override {
    opened_.reset();
    return location_;
  }

  absl::StatusOr<Place> TakeBack() override {
    ALPHEUS_ASSIGN_OR_RETURN(opened_, OpenPlace(location_));
    return opened_->place;
  }

  absl::Status End() override { return absl::OkStatus(); }

 private:
  const std::string name_;
  const ScratchFolder folder_;
  const Location location_;
  std::optional<OpenedPlace> opened_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contestant>> DefaultWal(
    const std::string& name, const std::string& parent) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
  return std::make_unique<FolderWal>(name, kDefaultKind, std::move(folder), 0);
}

absl::StatusOr<std::unique_ptr<Contestant>> DiskWal(const std::string& parent) {
  struct statfs found{};
  if (statfs(parent.c_str(), &found) != 0) {
    return absl::UnavailableError(
        absl::StrCat(parent, ": statfs failed: ", std::strerror(errno)));
  }
  if (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC) {
    return absl::NotFoundError(absl::StrCat(
        parent, " is in memory; name a folder on a disk by --disk"));
  }
  return DefaultWal(kDiskName, parent);
}

absl::StatusOr<std::unique_ptr<Contestant>> FlexWal(const std::string& parent,
                                                    uint64_t region_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
  ALPHEUS_RETURN_IF_ERROR(
      FlexStore::Format(FlexRegionIn(folder.path()), region_bytes));
  return std::make_unique<FolderWal>(kFlexName, kFlexKind, std::move(folder),
                                     region_bytes);
}

absl::StatusOr<std::unique_ptr<Contestant>> LocalAlpheusWal(
    const std::string& parent, uint64_t region_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
  return std::make_unique<FolderWal>(kAlpheusName, kAlpheusKind,
                                     std::move(folder), region_bytes);
}

}  // namespace alpheus::bench::wal
