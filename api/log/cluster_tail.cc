// SPDX-License-Identifier: Apache-2.0
#include "alpheus/cluster_tail.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/follow/remote_tail.h"
#include "replication/fabric/fabric.h"

namespace alpheus {
namespace {

constexpr uint32_t kPollMsMax = 10'000;
// At most this part of the timeout is charged between two polls, so that a
// caller that rarely calls, or was stopped, tries as long as others.
constexpr int64_t kChecks = 4;

}  // namespace

class ClusterTail::Impl {
 public:
  Impl(const ClusterTailOptions& options,
       const quorum::ClusterConfiguration& cluster,
       std::unique_ptr<Connectivity> connectivity)
      : log_name_(options.log_name),
        timeout_ns_(int64_t{options.timeout_ms} * kNanosPerMs),
        connectivity_(std::move(connectivity)),
        pump_(*connectivity_->fabric),
        tail_(*connectivity_->fabric, Clock::Real(),
              OptionsOf(options, cluster)) {}

  absl::StatusOr<std::optional<TailRecord>> Next(Deadline deadline) {
    for (;;) {
      if (const auto record = tail_.Next()) {
        return TailRecord{record->lsn, record->epoch, record->payload};
      }
      const bool any = pump_.Turn(tail_);
      tail_.Poll();
      ALPHEUS_RETURN_IF_ERROR(Named(tail_.status()));
      const int64_t now = Clock::Real().NowNanos();
      ALPHEUS_RETURN_IF_ERROR(CheckReach(now));
      if (any || tail_.has_records()) continue;
      if (deadline.HasPassed(now)) return std::nullopt;
      pump_.Sleep(std::min({deadline, tail_.NextPoll(),
                            Deadline::AtNanos(now + timeout_ns_ / kChecks)},
                           [](const Deadline& a, const Deadline& b) {
                             return a.at_nanos() < b.at_nanos();
                           }));
    }
  }

  void AskAgain() { tail_.AskAgain(); }
  const recovery::RemoteTail& tail() const { return tail_; }
  absl::Status Doubt() const { return Named(tail_.Doubt()); }

 private:
  recovery::RemoteTail::Options OptionsOf(
      const ClusterTailOptions& options,
      const quorum::ClusterConfiguration& cluster) {
    recovery::RemoteTail::Options tail;
    tail.cluster_id = cluster.cluster_id;
    tail.log_id = quorum::LogIdOf(cluster.cluster_id, options.log_name);
    tail.list_file = options.cluster_file;
    tail.configuration_id = cluster.id;
    tail.write_quorum = cluster.sizes.write_quorum;
    for (const quorum::ClusterMember& member : cluster.members) {
      tail.members.push_back(
          {member.node, member.address.ToString(),
           options.node == 0 || member.node.value == options.node});
    }
    tail.self.incarnation = connectivity_->random.Next() | 1;  // never 0
    tail.credentials = {cluster.key, &connectivity_->random};
    tail.from = options.from;
    tail.poll_ns = int64_t{options.poll_ms} * kNanosPerMs;
    tail.reply_timeout_ns = timeout_ns_;
    tail.retry_ns = std::min(tail.retry_ns, timeout_ns_ / 4);
    return tail;
  }

  // A final refusal is reported at once.
  absl::Status CheckReach(int64_t now) {
    const int64_t passed =
        std::min(now - std::exchange(last_check_, now), timeout_ns_ / kChecks);
    unreached_ns_ = tail_.is_in_reach() ? 0 : unreached_ns_ + passed;
    const absl::Status absences = tail_.Absences();
    const bool is_over = unreached_ns_ >= timeout_ns_ ||
                         (tail_.is_settled() && !tail_.is_in_reach() &&
                          !absl::IsUnavailable(absences));
    if (!is_over || absences.ok()) return absl::OkStatus();
    unreached_ns_ = 0;
    return Named({absences.code(), absl::StrCat("no replica can be followed. ",
                                                absences.message())});
  }

  absl::Status Named(const absl::Status& status) const {
    if (status.ok()) return status;
    return {status.code(),
            absl::StrCat("log ", log_name_, ": ", status.message())};
  }

  const std::string log_name_;
  const int64_t timeout_ns_;
  int64_t last_check_ = Clock::Real().NowNanos();
  int64_t unreached_ns_ = 0;  // time without a reachable node
  std::unique_ptr<Connectivity> connectivity_;
  FabricPump pump_;
  recovery::RemoteTail tail_;
};

absl::StatusOr<std::unique_ptr<ClusterTail>> ClusterTail::Open(
    const ClusterTailOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log_name));
  if (options.poll_ms < 1 || options.poll_ms > kPollMsMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "poll_ms ", options.poll_ms, ": must be 1 to ", kPollMsMax));
  }
  if (options.node != 0 &&
      quorum::FindMember(cluster, NodeId(options.node)) == nullptr) {
    return absl::NotFoundError(absl::StrCat(options.cluster_file, ": node ",
                                            options.node,
                                            " is not a member of the cluster"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Connectivity> connectivity,
                           Connectivity::Open(cluster, NodeId(0), options.say));
  return std::unique_ptr<ClusterTail>(new ClusterTail(
      std::make_unique<Impl>(options, cluster, std::move(connectivity))));
}

ClusterTail::ClusterTail(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClusterTail::~ClusterTail() = default;

absl::StatusOr<std::optional<TailRecord>> ClusterTail::Next(Deadline deadline) {
  return impl_->Next(deadline);
}

Lsn ClusterTail::durable_lsn() const { return impl_->tail().durable_lsn(); }
Lsn ClusterTail::next_lsn() const { return impl_->tail().next_lsn(); }
Lsn ClusterTail::head_lsn() const { return impl_->tail().head_lsn(); }
void ClusterTail::AskAgain() { impl_->AskAgain(); }
bool ClusterTail::is_settled() const { return impl_->tail().is_settled(); }
bool ClusterTail::is_caught_up() const { return impl_->tail().is_caught_up(); }
absl::Status ClusterTail::doubt() const { return impl_->Doubt(); }
uint64_t ClusterTail::node() const { return impl_->tail().source().value; }

}  // namespace alpheus
