// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/cluster_wal.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/alpheus.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

using replicated::AlpheusCluster;

class ClusterContestant final : public Contestant {
 public:
  explicit ClusterContestant(replicated::Work work) : work_(std::move(work)) {}

  std::string name() const override { return AlpheusNameWith(work_.backups); }

  absl::StatusOr<Place> Begin() override {
    ALPHEUS_ASSIGN_OR_RETURN(
        cluster_, AlpheusCluster::Start({}, work_, replicated::Waiting::kSpin));
    return TakeBack();
  }

  absl::StatusOr<Location> Finish() override {
    opened_.reset();
    return location();
  }

  absl::StatusOr<Place> TakeBack() override {
    ALPHEUS_ASSIGN_OR_RETURN(opened_, OpenPlace(location()));
    return opened_->place;
  }

  absl::Status End() override {
    opened_.reset();  // closes the log, for which its backups must be there
    cluster_.reset();
    return absl::OkStatus();
  }

 private:
  Location location() const {
    return {.kind = kClusterKind, .folder = cluster_->folder()};
  }

  const replicated::Work work_;
  std::unique_ptr<AlpheusCluster> cluster_;
  std::optional<OpenedPlace> opened_;
};

}  // namespace

std::string AlpheusNameWith(int backups) {
  return absl::StrCat("alpheus-", backups,
                      backups == 1 ? "-backup" : "-backups");
}

std::unique_ptr<Contestant> ClusterWal(replicated::Work work) {
  return std::make_unique<ClusterContestant>(std::move(work));
}

}  // namespace alpheus::bench::wal
