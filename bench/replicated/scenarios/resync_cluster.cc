// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/scenarios/resync_cluster.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/alpheus.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"
#include "log/format/record.h"

namespace alpheus::bench::replicated {
namespace {

constexpr uint64_t kResyncPrimary = 1;
constexpr uint64_t kResyncBackup = 2;
constexpr uint64_t kJoiner = 3;
constexpr uint64_t kFilledBytes = 1024;  // of a payload
constexpr uint32_t kResyncFillBatch = 64;
constexpr uint64_t kRecordsBefore = 1000;  // that the member does not miss
constexpr uint64_t kRoomBytes = uint64_t{32} << 20;
constexpr std::chrono::milliseconds kInSyncTimeout{20'000};
constexpr std::chrono::milliseconds kLookAgain{1};

LogOptions OptionsIn(const std::string& folder) {
  LogOptions options;
  options.path = ClusterFolder::ReplicaOf(folder, kResyncPrimary);
  options.replication.cluster_file = ClusterFolder::ClusterFile(folder);
  options.replication.node = kResyncPrimary;
  options.replication.log_name = BenchLogName(0);
  options.replication.gather_ms = 10'000;
  options.replication.open_timeout_ms = 60'000;
  options.replication.ack_timeout_ms = 60'000;
  options.replication.yields = 0;  // as Waiting::kBlock
  return options;
}

absl::StatusOr<Region> MapReplica(const std::string& folder, uint64_t node) {
  return Region::OpenForReading(ClusterFolder::ReplicaOf(folder, node));
}

absl::StatusOr<std::span<const std::byte>> RingOf(const Region& region) {
  ALPHEUS_ASSIGN_OR_RETURN(const Layout layout,
                           Layout::ForRegion(region.bytes().size()));
  return region.bytes().subspan(layout.ring_offset, layout.ring_capacity);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ResyncCluster>> ResyncCluster::Start(
    const Settings& settings) {
  const uint64_t missed_bytes = settings.resync_mib << 20;
  ALPHEUS_ASSIGN_OR_RETURN(
      ClusterFolder folder,
      ClusterFolder::Make(
          {.parent = settings.folder,
           .ring_bytes = missed_bytes + missed_bytes / 2 + kRoomBytes,
           .nodes = 3,
           .write_quorum = 2}));
  std::unique_ptr<ResyncCluster> made(
      new ResyncCluster(settings, std::move(folder)));
  ALPHEUS_RETURN_IF_ERROR(made->Open());
  return made;
}

absl::Status ResyncCluster::Open() {
  ALPHEUS_ASSIGN_OR_RETURN(
      BackupProcess backup,
      BackupProcess::Start(kAlpheusBlockKind, folder_.path(), kResyncBackup));
  backup_.emplace(std::move(backup));
  ALPHEUS_RETURN_IF_ERROR(StartMember());
  ALPHEUS_ASSIGN_OR_RETURN(log_, Log::Open(OptionsIn(folder_.path())));
  ALPHEUS_RETURN_IF_ERROR(AwaitInSync(3));
  ALPHEUS_RETURN_IF_ERROR(Fill(kRecordsBefore));
  ALPHEUS_ASSIGN_OR_RETURN(Region primary,
                           MapReplica(folder_.path(), kResyncPrimary));
  ALPHEUS_ASSIGN_OR_RETURN(Region member, MapReplica(folder_.path(), kJoiner));
  primary_file_.emplace(std::move(primary));
  member_file_.emplace(std::move(member));
  return absl::OkStatus();
}

absl::Status ResyncCluster::StartMember() {
  ALPHEUS_ASSIGN_OR_RETURN(
      BackupProcess member,
      BackupProcess::Start(kAlpheusBlockKind, folder_.path(), kJoiner));
  member_.emplace(std::move(member));
  return absl::OkStatus();
}

absl::Status ResyncCluster::LoseMember() {
  member_.reset();
  return AwaitInSync(2);
}

absl::Status ResyncCluster::AwaitInSync(uint32_t count) const {
  const int64_t end =
      NowNanos() + std::chrono::nanoseconds(kInSyncTimeout).count();
  while (log_->replication_status().in_sync != count) {
    if (NowNanos() > end) {
      return absl::DeadlineExceededError(
          absl::StrCat(log_->replication_status().ToString(), " instead of ",
                       count, " after ", kInSyncTimeout.count(), " ms"));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return absl::OkStatus();
}

absl::Status ResyncCluster::Fill(uint64_t records) {
  const std::string payload(kFilledBytes, 'Z');
  for (uint64_t i = 0; i < records; ++i) {
    ALPHEUS_RETURN_IF_ERROR(
        log_->Append(payload, {.frequency = kResyncFillBatch}).status());
  }
  filled_ += records;
  return log_->Force(Lsn(log_->next_lsn().value - 1));
}

absl::Status ResyncCluster::Miss() {
  // A new log's records are adjacent from the ring's start.
  const uint64_t begin = filled_ * RecordBytes(kFilledBytes);
  ALPHEUS_RETURN_IF_ERROR(Fill((settings_.resync_mib << 20) / kFilledBytes));
  const uint64_t bytes = filled_ * RecordBytes(kFilledBytes) - begin;
  ALPHEUS_ASSIGN_OR_RETURN(const auto here, RingOf(*primary_file_));
  ALPHEUS_ASSIGN_OR_RETURN(const auto there, RingOf(*member_file_));
  missed_ = here.subspan(begin, bytes);
  missed_there_ = there.subspan(begin, bytes);
  if (!HasCaughtUp()) return absl::OkStatus();
  return absl::InternalError(
      "the member that is away has what was appended since: nothing is missed");
}

// It is brought in the order of the ring.
bool ResyncCluster::HasCaughtUp() const {
  constexpr uint64_t kLast = RecordBytes(kFilledBytes);
  return std::memcmp(missed_.last(kLast).data(),
                     missed_there_.last(kLast).data(), kLast) == 0;
}

}  // namespace alpheus::bench::replicated
