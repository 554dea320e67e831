// SPDX-License-Identifier: Apache-2.0
#include "alpheus/cluster_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/node/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/pmem/region.h"
#include "quorum/cluster_file.h"
#include "quorum/log_id.h"
#include "recovery/remote_region.h"
#include "replication/fabric/tcp/tcp_fabric.h"

namespace alpheus {
namespace {

// Damage in an image of a replica that is being written may be a record that
// was read in the middle; so often it is read again before it is believed.
constexpr int kFetchesMax = 5;

}  // namespace

class ClusterReader::Impl {
 public:
  Impl(ClusterReaderOptions options, ClusterConfiguration cluster)
      : options_(std::move(options)),
        cluster_(std::move(cluster)),
        fabric_(TcpFabricOptions(), Clock::Real(), random_),
        deadline_(
            Deadline::In(std::chrono::milliseconds(options_.timeout_ms))) {}

  absl::Status Read() {
    ALPHEUS_RETURN_IF_ERROR(AddReplicas());
    for (int fetch = 0; fetch < kFetchesMax; ++fetch) {
      FetchMissing();
      if (!AnyToFetchAgain()) break;
    }
    if (std::any_of(replicas_.begin(), replicas_.end(),
                    [](const Replica& r) { return r.was_reached; })) {
      Publish();
      return absl::OkStatus();
    }
    std::string text = "no replica could be read:";
    for (const Replica& replica : replicas_) {
      absl::StrAppend(&text, " ", replica.reading.status.message(), ".");
    }
    return absl::UnavailableError(text);
  }

  const std::vector<ReplicaReading>& readings() const { return readings_; }
  uint32_t write_quorum() const { return cluster_.sizes.write_quorum; }
  LogReader* reader(size_t index) { return replicas_[index].reader.get(); }

  Lsn durable_lsn() const {
    std::vector<Lsn> ends;
    Lsn proven;
    const Epoch newest = NewestEpoch();
    for (const Replica& replica : replicas_) {
      if (!Counts(replica, newest)) continue;
      ends.push_back(replica.reading.report->end_lsn);
      proven = std::max(proven, replica.reading.report->proven_lsn);
    }
    std::sort(ends.begin(), ends.end(), std::greater<>());
    if (ends.size() < write_quorum()) return proven;
    return std::max(proven, ends[write_quorum() - 1]);
  }

  absl::Status ForEachDurable(
      const std::function<absl::Status(const ReaderRecord&)>& visit) {
    const Lsn durable = durable_lsn();
    const Epoch newest = NewestEpoch();
    Replica* longest = nullptr;
    for (Replica& replica : replicas_) {
      if (!Counts(replica, newest)) continue;
      if (longest == nullptr ||
          longest->reading.report->end_lsn < replica.reading.report->end_lsn) {
        longest = &replica;
      }
    }
    if (longest == nullptr) {
      for (const Replica& replica : replicas_) {
        ALPHEUS_RETURN_IF_ERROR(replica.reading.status);
      }
      return absl::UnavailableError(absl::StrCat(
          "no replica of epoch ", newest.value,
          " could be read; `alpheus status` shows what each one says"));
    }
    // What is behind the durable end ends the walk, and is no error.
    bool ended = false;
    const absl::Status walked =
        longest->reader->ForEach([&](const ReaderRecord& record) {
          if (record.lsn > durable) {
            ended = true;
            return absl::CancelledError("beyond the durable end");
          }
          ReaderRecord shown = record;
          if (shown.state == RecordState::kCompleted) {
            shown.state = RecordState::kDurable;
          }
          return visit(shown);
        });
    return ended ? absl::OkStatus() : walked;
  }

 private:
  struct Replica {
    ReplicaReading reading;
    std::unique_ptr<LogReader> reader;
    bool was_reached = false;
    bool is_read = false;  // or given up
    // While it is being fetched:
    std::optional<Region> image;
    std::unique_ptr<RemoteRegion> remote;
  };

  absl::Status AddReplicas() {
    for (const ClusterMember& member : cluster_.members) {
      if (options_.node != 0 && member.node.value != options_.node) continue;
      Replica replica;
      replica.reading.node = member.node.value;
      replica.reading.address = member.address.ToString();
      replicas_.push_back(std::move(replica));
    }
    if (!replicas_.empty()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(options_.cluster_file, ": node ",
                                            options_.node,
                                            " is no member of the cluster"));
  }

  std::string NameOf(const Replica& replica) const {
    return absl::StrCat("node ", replica.reading.node, " (",
                        replica.reading.address, "), log ", options_.log_name);
  }

  void FetchMissing() {
    FabricPump pump(fabric_);
    for (Replica& replica : replicas_) {
      if (!replica.is_read) StartFetching(replica);
    }
    pump.Add({[this](const ConnectionEvent& event) {
                return std::any_of(replicas_.begin(), replicas_.end(),
                                   [&event](const Replica& replica) {
                                     return replica.remote != nullptr &&
                                            replica.remote->Take(event);
                                   });
              },
              [this](const Completion& completion) {
                return std::any_of(replicas_.begin(), replicas_.end(),
                                   [&completion](const Replica& replica) {
                                     return replica.remote != nullptr &&
                                            replica.remote->Take(completion);
                                   });
              }});
    while (AnyUnderWay() && !deadline_.HasPassed(Clock::Real().NowNanos())) {
      if (!pump.Turn()) pump.Sleep(deadline_);
    }
    for (Replica& replica : replicas_) {
      if (replica.remote != nullptr) FinishFetching(replica);
    }
  }

  void StartFetching(Replica& replica) {
    RemoteRegion::Options options;
    options.at.address = replica.reading.address;
    options.at.hello.cluster_id = cluster_.cluster_id;
    options.at.hello.log_id = LogIdOf(cluster_.cluster_id, options_.log_name);
    options.at.hello.primary.incarnation = random_.Next() | 1;  // never 0
    options.at.deadline = deadline_;
    options.without_ring = options_.without_records;
    replica.remote = std::make_unique<RemoteRegion>(
        fabric_, std::move(options),
        [&replica, name = NameOf(replica)](
            uint64_t bytes) -> absl::StatusOr<std::span<std::byte>> {
          ALPHEUS_ASSIGN_OR_RETURN(replica.image,
                                   Region::Anonymous(bytes, name));
          return replica.image->bytes();
        });
  }

  bool AnyUnderWay() const {
    return std::any_of(
        replicas_.begin(), replicas_.end(), [](const Replica& replica) {
          return replica.remote != nullptr && !replica.remote->done();
        });
  }

  void FinishFetching(Replica& replica) {
    const bool done = replica.remote->done();
    absl::Status status = replica.remote->status();
    replica.was_reached |= replica.remote->welcome().has_value();
    replica.remote.reset();
    if (!done) {
      status = absl::UnavailableError(absl::StrCat(NameOf(replica),
                                                   " did not answer within ",
                                                   options_.timeout_ms, " ms"));
    }
    if (status.ok()) status = Look(replica);
    replica.reading.status = status;
    replica.is_read = !absl::IsDataLoss(status);
    replica.image.reset();
  }

  absl::Status Look(Replica& replica) {
    replica.image->Freeze();
    ALPHEUS_ASSIGN_OR_RETURN(replica.reader,
                             LogReader::OpenImage(*std::move(replica.image)));
    replica.reading.info = replica.reader->info();
    if (options_.without_records) return absl::OkStatus();
    replica.reading.report = replica.reader->Verify();
    return replica.reading.report->status;
  }

  bool AnyToFetchAgain() const {
    return std::any_of(replicas_.begin(), replicas_.end(),
                       [](const Replica& replica) { return !replica.is_read; });
  }

  void Publish() {
    for (const Replica& replica : replicas_) {
      readings_.push_back(replica.reading);
    }
  }

  Epoch NewestEpoch() const {
    Epoch newest;
    for (const Replica& replica : replicas_) {
      if (replica.reading.info) {
        newest = std::max(newest, replica.reading.info->log_epoch);
      }
    }
    return newest;
  }

  static bool Counts(const Replica& replica, Epoch newest) {
    return replica.reading.report && !replica.reading.info->repairing &&
           replica.reading.info->log_epoch == newest;
  }

  const ClusterReaderOptions options_;
  const ClusterConfiguration cluster_;
  EntropyRandom random_;
  TcpFabric fabric_;
  const Deadline deadline_;
  std::vector<Replica> replicas_;  // their images are gone before the fabric
  std::vector<ReplicaReading> readings_;
};

absl::StatusOr<std::unique_ptr<ClusterReader>> ClusterReader::Open(
    const ClusterReaderOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster,
                           LoadClusterFile(options.cluster_file));
  ALPHEUS_RETURN_IF_ERROR(CheckLogName(options.log_name));
  auto impl = std::make_unique<Impl>(options, std::move(cluster));
  ALPHEUS_RETURN_IF_ERROR(impl->Read());
  return std::unique_ptr<ClusterReader>(new ClusterReader(std::move(impl)));
}

ClusterReader::ClusterReader(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
ClusterReader::~ClusterReader() = default;

const std::vector<ReplicaReading>& ClusterReader::replicas() const {
  return impl_->readings();
}

uint32_t ClusterReader::write_quorum() const { return impl_->write_quorum(); }
Lsn ClusterReader::durable_lsn() const { return impl_->durable_lsn(); }

absl::Status ClusterReader::ForEachDurable(
    const std::function<absl::Status(const ReaderRecord&)>& visit) {
  return impl_->ForEachDurable(visit);
}

LogReader* ClusterReader::reader(size_t index) { return impl_->reader(index); }

}  // namespace alpheus
