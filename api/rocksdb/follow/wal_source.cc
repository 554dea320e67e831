// SPDX-License-Identifier: Apache-2.0
// Sources of a follower: a cluster's nodes, or the region of a local log.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/cluster_tail.h"
#include "alpheus/log_reader.h"
#include "api/rocksdb/follow/wal_follower.h"
#include "log/base/deadline.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

class ClusterSource final : public WalSource {
 public:
  ClusterSource(ClusterTailOptions options, uint32_t timeout_ms)
      : options_(std::move(options)), timeout_ms_(timeout_ms) {}

  absl::StatusOr<Lsn> Read(Lsn from, const Visit& visit) override {
    if (tail_ == nullptr || from == Lsn(0) || from != next_) {
      options_.from = from;
      ALPHEUS_ASSIGN_OR_RETURN(tail_, ClusterTail::Open(options_));
      next_ = from;
    }
    absl::Status read = ContinueReading(visit);
    if (read.ok()) return next_ = tail_->next_lsn();
    // The tail is past the refused record, or is of no more use.
    if (!absl::IsUnavailable(read)) tail_.reset();
    return read;
  }

 private:
  // Reads up to the records that were durable when all reachable nodes had
  // answered after the call. Later records of a busy writer are left.
  absl::Status ContinueReading(const Visit& visit) {
    std::optional<Lsn> last;
    tail_->AskAgain();
    for (uint32_t waited_ms = 0; waited_ms < timeout_ms_;) {
      // Questions are sent, and answers received, only in here.
      absl::StatusOr<std::optional<TailRecord>> record =
          tail_->Next(Deadline::In(std::chrono::milliseconds(kRoundMs)));
      ALPHEUS_RETURN_IF_ERROR(record.status());
      if (!*record) {
        if (tail_->is_caught_up()) return absl::OkStatus();
        waited_ms += kRoundMs;
        continue;
      }
      absl::Status visited = visit((*record)->lsn, (*record)->payload);
      if (!visited.ok()) {
        tail_.reset();  // also if it is Unavailable
        return visited;
      }
      next_ = (*record)->lsn + 1;
      waited_ms = 0;
      if (!last && tail_->is_settled()) last = tail_->durable_lsn();
      if (last && next_ > *last) return absl::OkStatus();
    }
    // All reachable nodes may lack what the others have.
    const absl::Status doubt = tail_->doubt();
    if (tail_->is_settled() && !doubt.ok()) {
      return {doubt.code(), absl::StrCat(doubt.message(),
                                         ". Nothing was changed; try again")};
    }
    return absl::UnavailableError(absl::StrCat(
        "no node has reported the end of the log within ", timeout_ms_,
        " ms. Nothing was changed; start the nodes, and try again"));
  }

  static constexpr uint32_t kRoundMs =
      1;  // Next waits it out when nothing is new

  ClusterTailOptions options_;
  const uint32_t timeout_ms_;
  std::unique_ptr<ClusterTail> tail_;
  Lsn next_{0};  // after the last visited one
};

class RegionSource final : public WalSource {
 public:
  explicit RegionSource(std::unique_ptr<LogReader> reader)
      : reader_(std::move(reader)) {}

  absl::StatusOr<Lsn> Read(Lsn from, const Visit& visit) override {
    Lsn next = from;
    absl::Status read;
    for (int i = 0; i < kTriesMax; ++i) {
      read = ContinueReading(visit, &next);
      const Lsn head = reader_->info().head_lsn;
      if (read.ok()) return std::max(next, head);
      // A writer may reuse the bytes that are being read, even of records that
      // are no longer needed.
      const bool is_overtaken = next != Lsn(0) && head > next;
      if (!absl::IsOutOfRange(read) || is_overtaken) return read;
    }
    return read;
  }

 private:
  static constexpr int kTriesMax = 10;

  // `next`: the next LSN to visit.
  absl::Status ContinueReading(const Visit& visit, Lsn* next) {
    return reader_->ForEachFrom(
        *next, [&visit, next](const ReaderRecord& record) -> absl::Status {
          absl::Status visited;
          if (record.state == RecordState::kDurable ||
              record.state == RecordState::kCompleted) {
            visited = visit(record.lsn, record.payload);
          }
          if (visited.ok()) *next = record.lsn + 1;
          return visited;
        });
  }

  const std::unique_ptr<LogReader> reader_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WalSource>> OpenWalSource(
    const WalOptions& options) {
  const ReplicationOptions& replication = options.log.replication;
  if (!replication.cluster_file.empty()) {
    ClusterTailOptions tail;
    tail.cluster_file = replication.cluster_file;
    tail.log_name = replication.log_name;
    tail.poll_ms = 1;
    // Reports wrong options at once; connects to no node.
    ALPHEUS_RETURN_IF_ERROR(ClusterTail::Open(tail).status());
    return std::make_unique<ClusterSource>(std::move(tail),
                                           replication.open_timeout_ms);
  }
  absl::StatusOr<std::unique_ptr<LogReader>> opened =
      LogReader::Open(options.log.path);
  if (absl::IsNotFound(opened.status())) {
    return absl::NotFoundError(absl::StrCat(
        options.log.path,
        ": there is no log to follow. Is its file system mounted, and the path "
        "right? The process that has the database makes it"));
  }
  ALPHEUS_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<LogReader> reader = *std::move(opened);
  if (reader->info().replica_count != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.log.path, ": is one of ", reader->info().replica_count,
        " replicas, and does not know alone what is durable. Nothing was "
        "changed; name the cluster (alpheus:?cluster=FILE&follow=true)"));
  }
  return std::make_unique<RegionSource>(std::move(reader));
}

}  // namespace alpheus::wal
