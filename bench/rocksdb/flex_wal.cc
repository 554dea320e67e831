// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/flex_wal.h"

#include <utility>

#include "bench/replicated/cluster_folder.h"
#include "bench/rocksdb/flex_file_system.h"
#include "bench/rocksdb/flex_store.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

using replicated::ScratchFolder;

class FlexContestant final : public Contestant {
 public:
  explicit FlexContestant(ScratchFolder folder) : folder_(std::move(folder)) {}

  std::string RegionPath() const { return folder_.path() + "/region"; }

  std::string name() const override { return kFlexName; }

  // The region stays open from turn to turn: its pages are mapped once.
  absl::StatusOr<Place> Begin() override {
    if (env_ != nullptr) return Place{.env = env_.get()};
    return Restart();
  }

  absl::StatusOr<Place> Restart() override {
    env_.reset();
    ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<FlexStore> store,
                             FlexStore::Open(RegionPath()));
    env_ = rocksdb::NewCompositeEnv(
        std::make_shared<FlexFileSystem>(std::move(store)));
    return Place{.env = env_.get()};
  }

  absl::Status End() override { return absl::OkStatus(); }

 private:
  const ScratchFolder folder_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contestant>> FlexWal(const std::string& parent,
                                                    uint64_t region_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
  auto made = std::make_unique<FlexContestant>(std::move(folder));
  ALPHEUS_RETURN_IF_ERROR(FlexStore::Format(made->RegionPath(), region_bytes));
  return made;
}

}  // namespace alpheus::bench::wal
