// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/peers/etcd.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/failover/times.h"
#include "bench/harness/clock.h"
#include "bench/replicated/peers/etcd_cluster.h"
#include "bench/replicated/peers/peer_process.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {

using replicated::EtcdCluster;
using replicated::EtcdStatus;
using replicated::Waiting;

namespace {

constexpr int kEtcdMembers = 3;
constexpr std::chrono::microseconds kAskEtcdAgain{500};

class EtcdContestant final : public Contestant {
 public:
  EtcdContestant(std::string folder, uint32_t silence_ms)
      : folder_(std::move(folder)),
        silence_ms_(silence_ms),
        payload_(kPayloadBytes, 'Z') {}

  std::string name() const override {
    return silence_ms_ == 0 ? kEtcdName : kEtcdFastName;
  }
  int TriesMax(const absl::Status& /*ended*/) const override {
    return kPeerTriesMax;
  }
  std::string WhyNot(Fault fault) const override {
    if (fault != Fault::kCut) return "";
    return "the sockets of another program are cut off by root only";
  }

  absl::StatusOr<Parts> Run(Fault fault, uint64_t /*log_mib*/) override {
    ALPHEUS_ASSIGN_OR_RETURN(
        const std::unique_ptr<EtcdCluster> cluster,
        EtcdCluster::Start(folder_, kEtcdMembers, Arguments()));
    const size_t leader = cluster->leader();
    const int64_t load_end =
        NowNanos() + std::chrono::nanoseconds(LoadTime()).count();
    while (NowNanos() < load_end) {
      ALPHEUS_RETURN_IF_ERROR(Put(*cluster, leader));
    }
    const int64_t begin = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(Lose(fault, *cluster));
    ALPHEUS_RETURN_IF_ERROR(PutToTheNext(*cluster));
    return Parts{{"total", MillisBetween(begin, NowNanos())}};
  }

 private:
  std::vector<std::string> Arguments() const {
    if (silence_ms_ == 0) return {};
    return {"--heartbeat-interval", absl::StrCat(silence_ms_ / 5),
            "--election-timeout", absl::StrCat(silence_ms_)};
  }

  absl::Status Put(EtcdCluster& cluster, size_t member) {
    return cluster.client(member)
        .Put(absl::StrCat("log/", ++puts_), payload_, Waiting::kBlock)
        .status();
  }

  // The next leader may change once more before it takes a put.
  absl::Status PutToTheNext(EtcdCluster& cluster) {
    const int64_t end =
        NowNanos() + std::chrono::nanoseconds(kFailOverTimeout).count();
    for (;;) {
      ALPHEUS_ASSIGN_OR_RETURN(const size_t next, AwaitLeader(cluster, end));
      const absl::Status put = Put(cluster, next);
      if (put.ok() || NowNanos() > end) return put;
    }
  }

  static absl::Status Lose(Fault fault, EtcdCluster& cluster) {
    const size_t leader = cluster.leader();
    switch (fault) {
      case Fault::kKill:
        cluster.member(leader).Signal(SIGKILL);
        return absl::OkStatus();
      case Fault::kStop:
        cluster.member(leader).Signal(SIGSTOP);
        return absl::OkStatus();
      case Fault::kDrain:
        return cluster.client(leader).MoveLeader(
            cluster.id((leader + 1) % cluster.size()));
      case Fault::kCut:
        break;
    }
    return absl::InvalidArgumentError("etcd: no such fault");
  }

  // Returns the member that others than the old leader name.
  static absl::StatusOr<size_t> AwaitLeader(EtcdCluster& cluster, int64_t end) {
    const size_t old = cluster.leader();
    while (NowNanos() < end) {
      for (size_t i = 0; i < cluster.size(); ++i) {
        if (i == old) continue;
        ALPHEUS_ASSIGN_OR_RETURN(const EtcdStatus status,
                                 cluster.client(i).AskStatus());
        for (size_t next = 0; next < cluster.size(); ++next) {
          if (next != old && cluster.id(next) == status.leader) return next;
        }
      }
      std::this_thread::sleep_for(kAskEtcdAgain);
    }
    return absl::DeadlineExceededError(
        absl::StrCat("etcd: no other leader within ",
                     std::chrono::seconds(kFailOverTimeout).count(), " s"));
  }

  const std::string folder_;
  const uint32_t silence_ms_;
  const std::string payload_;
  uint64_t puts_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contestant>> Etcd(std::string folder,
                                                 uint32_t silence_ms) {
  ALPHEUS_RETURN_IF_ERROR(
      replicated::FindProgram("etcd", "etcd-server").status());
  return std::make_unique<EtcdContestant>(std::move(folder), silence_ms);
}

}  // namespace alpheus::bench::failover
