// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/alpheus_wal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "api/rocksdb/wal_file_system.h"
#include "api/rocksdb/wal_options.h"
#include "bench/replicated/alpheus.h"
#include "bench/replicated/cluster_folder.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

using replicated::AlpheusCluster;
using replicated::ScratchFolder;

std::unique_ptr<rocksdb::Env> EnvOf(WalOptions options) {
  return rocksdb::NewCompositeEnv(std::make_shared<WalFileSystem>(
      std::move(options), rocksdb::FileSystem::Default()));
}

class LocalContestant final : public Contestant {
 public:
  LocalContestant(ScratchFolder folder, uint64_t region_bytes)
      : folder_(std::move(folder)), region_bytes_(region_bytes) {}

  std::string name() const override { return kAlpheusName; }

  // The log stays open from turn to turn, as does a ring that goes round.
  absl::StatusOr<Place> Begin() override {
    if (env_ != nullptr) return Place{.env = env_.get()};
    return Restart();
  }

  // The log is opened by the first database.
  absl::StatusOr<Place> Restart() override {
    env_.reset();
    WalOptions options;
    options.log.path = folder_.path() + "/wal";
    options.create_bytes = region_bytes_;
    env_ = EnvOf(std::move(options));
    return Place{.env = env_.get()};
  }

  absl::Status End() override { return absl::OkStatus(); }

 private:
  const ScratchFolder folder_;
  const uint64_t region_bytes_;
  std::unique_ptr<rocksdb::Env> env_;
};

class ReplicatedContestant final : public Contestant {
 public:
  explicit ReplicatedContestant(replicated::Work work)
      : work_(std::move(work)) {}

  std::string name() const override { return AlpheusNameWith(work_.backups); }

  absl::StatusOr<Place> Begin() override {
    ALPHEUS_ASSIGN_OR_RETURN(
        cluster_, AlpheusCluster::Start({}, work_, replicated::Waiting::kSpin));
    return Restart();
  }

  absl::StatusOr<Place> Restart() override {
    env_.reset();
    WalOptions options;
    options.log = cluster_->LogOptionsFor(0);
    env_ = EnvOf(std::move(options));
    return Place{.env = env_.get()};
  }

  absl::Status End() override {
    env_.reset();  // closes the log, for which its backups must be there
    cluster_.reset();
    return absl::OkStatus();
  }

 private:
  const replicated::Work work_;
  std::unique_ptr<AlpheusCluster> cluster_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace

std::string AlpheusNameWith(int backups) {
  return absl::StrCat("alpheus-", backups,
                      backups == 1 ? "-backup" : "-backups");
}

absl::StatusOr<std::unique_ptr<Contestant>> LocalAlpheusWal(
    const std::string& parent, uint64_t region_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
  return std::make_unique<LocalContestant>(std::move(folder), region_bytes);
}

std::unique_ptr<Contestant> ReplicatedAlpheusWal(replicated::Work work) {
  return std::make_unique<ReplicatedContestant>(std::move(work));
}

}  // namespace alpheus::bench::wal
