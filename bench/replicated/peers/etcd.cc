// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/etcd.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/replicated/peers/etcd_cluster.h"
#include "bench/replicated/peers/peer_process.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

class EtcdCandidate final : public Candidate {
 public:
  explicit EtcdCandidate(const Work& work) : work_(work) {}

  std::string name() const override { return kEtcdName; }
  bool is_counted() const override { return false; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    waiting_ = waiting;
    payload_.assign(payload_bytes, 'Z');
    revision_ = 0;
    puts_ = 0;
    ALPHEUS_ASSIGN_OR_RETURN(
        cluster_, EtcdCluster::Start(work_.folder, work_.backups + 1));
    leader_ = &cluster_->client(cluster_->leader());
    return absl::OkStatus();
  }

  absl::Status Append() override {
    ALPHEUS_ASSIGN_OR_RETURN(
        const uint64_t revision,
        leader_->Put(absl::StrCat("log/", ++puts_), payload_, waiting_));
    if (revision > std::exchange(revision_, revision)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "etcd: put ", puts_, " made no new revision, still ", revision));
  }

  absl::Status End() override {
    leader_ = nullptr;
    cluster_.reset();
    return absl::OkStatus();
  }

 private:
  const Work work_;
  Waiting waiting_ = Waiting::kBlock;
  std::string payload_;
  uint64_t revision_ = 0;
  uint64_t puts_ = 0;
  std::unique_ptr<EtcdCluster> cluster_;
  EtcdClient* leader_ = nullptr;  // one of cluster_
};

}  // namespace

MakeCandidate Etcd() {
  return [](const Work& work) -> absl::StatusOr<std::unique_ptr<Candidate>> {
    if (work.copies() != (work.backups + 1) / 2 + 1 || work.batch != 1) {
      return absl::NotFoundError(
          absl::StrCat("waits for the majority of its members, one record at a "
                       "time, not for ",
                       work.copies(), " of ", work.backups + 1,
                       " in batches of ", work.batch));
    }
    ALPHEUS_RETURN_IF_ERROR(FindProgram("etcd", "etcd-server").status());
    return std::make_unique<EtcdCandidate>(work);
  };
}

}  // namespace alpheus::bench::replicated
