// SPDX-License-Identifier: Apache-2.0
// What a follower reads: of a cluster by its nodes, of a local log from its
// region.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/cluster_tail.h"
#include "alpheus/log_reader.h"
#include "api/rocksdb/wal_follower.h"
#include "log/base/deadline.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

class ClusterSource final : public WalSource {
 public:
  ClusterSource(ClusterTailOptions options, uint32_t timeout_ms)
      : options_(std::move(options)), timeout_ms_(timeout_ms) {}

  absl::Status Read(Lsn from, const Visit& visit) override {
    if (tail_ == nullptr || from == Lsn(0) || from != next_) {
      options_.from = from;
      ALPHEUS_ASSIGN_OR_RETURN(tail_, ClusterTail::Open(options_));
      next_ = from;
    }
    using std::chrono::steady_clock;
    const auto until =
        steady_clock::now() + std::chrono::milliseconds(timeout_ms_);
    for (;;) {
      // Long enough to ask each node, which is done only in here, and to hear
      // what it says.
      absl::StatusOr<std::optional<TailRecord>> record =
          tail_->Next(Deadline::In(kRound));
      ALPHEUS_RETURN_IF_ERROR(record.status());
      if (*record) {
        ALPHEUS_RETURN_IF_ERROR(visit((*record)->lsn, (*record)->payload));
        next_ = (*record)->lsn + 1;
        continue;
      }
      if (tail_->is_caught_up()) return absl::OkStatus();
      if (steady_clock::now() >= until) {
        return absl::UnavailableError(absl::StrCat(
            "no node has told within ", timeout_ms_,
            " ms how far the log is. Nothing was changed; start the nodes, and "
            "try again"));
      }
    }
  }

 private:
  static constexpr std::chrono::milliseconds kRound{20};

  ClusterTailOptions options_;
  const uint32_t timeout_ms_;
  std::unique_ptr<ClusterTail> tail_;
  Lsn next_{0};  // behind what was visited
};

class RegionSource final : public WalSource {
 public:
  RegionSource(std::string path, std::unique_ptr<LogReader> reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  absl::Status Read(Lsn from, const Visit& visit) override {
    if (reader_ == nullptr) {
      ALPHEUS_ASSIGN_OR_RETURN(reader_, LogReader::Open(path_));
    }
    bool is_behind = false;
    const absl::Status read =
        reader_->ForEach([&](const ReaderRecord& record) -> absl::Status {
          if (record.lsn < from) {
            is_behind = true;
            return absl::OkStatus();
          }
          // The head, behind what was read before.
          if (record.lsn > from && from != Lsn(0) && !is_behind) {
            return Cleaned(from, record.lsn);
          }
          is_behind = true;
          if (record.state != RecordState::kDurable &&
              record.state != RecordState::kCompleted) {
            return absl::OkStatus();
          }
          return visit(record.lsn, record.payload);
        });
    // The reader is to be opened again, then.
    if (absl::IsOutOfRange(read)) reader_.reset();
    if (read.ok() && reader_->info().head_lsn > from && from != Lsn(0) &&
        !is_behind) {
      return Cleaned(from, reader_->info().head_lsn);
    }
    return read;
  }

 private:
  static absl::Status Cleaned(Lsn from, Lsn head) {
    return absl::OutOfRangeError(absl::StrCat(
        "LSN ", from.value, " was cleaned, the head is ", head.value));
  }

  const std::string path_;
  std::unique_ptr<LogReader> reader_;
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
    // What is wrong with it is told at once; that connects to nobody.
    ALPHEUS_RETURN_IF_ERROR(ClusterTail::Open(tail).status());
    return std::make_unique<ClusterSource>(std::move(tail),
                                           replication.open_timeout_ms);
  }
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<LogReader> reader,
                           LogReader::Open(options.log.path));
  if (reader->info().replica_count != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.log.path, ": is one of ", reader->info().replica_count,
        " replicas, and does not know alone what is durable. Nothing was "
        "changed; name the cluster (alpheus:?cluster=FILE&follow=true)"));
  }
  return std::make_unique<RegionSource>(options.log.path, std::move(reader));
}

}  // namespace alpheus
