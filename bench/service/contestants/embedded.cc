// SPDX-License-Identifier: Apache-2.0
#include "bench/service/contestants/embedded.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/peers/peer_process.h"
#include "bench/service/cluster/service_cluster.h"
#include "bench/service/load/micros.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {

using replicated::BenchLogName;
using replicated::ClusterFolder;
using replicated::PeerProcess;

namespace {

constexpr uint32_t kHeartbeatMs = 30;  // as a node that stands has it
constexpr uint32_t kGatherMs = 10'000;
constexpr std::chrono::milliseconds kEmbeddedStartTimeout{30'000};

class EmbeddedLog final : public Contestant {
 public:
  EmbeddedLog(ClusterFolder folder, uint64_t ring_bytes, Learning learning)
      : folder_(std::move(folder)),
        ring_bytes_(ring_bytes),
        learning_(learning) {}

  absl::Status Start() {
    for (uint64_t node = 2; node <= kNodes; ++node) {
      ALPHEUS_ASSIGN_OR_RETURN(PeerProcess process,
                               StartDaemon(folder_.path(), node));
      nodes_.push_back(std::move(process));
    }
    LogOptions options;
    options.path = ClusterFolder::ReplicaOf(folder_.path(), 1);
    options.replication.cluster_file =
        ClusterFolder::ClusterFile(folder_.path());
    options.replication.node = 1;
    options.replication.log_name = BenchLogName(0);
    options.replication.heartbeat_ms = kHeartbeatMs;
    options.replication.gather_ms = kGatherMs;
    return AwaitReady(nodes_, kEmbeddedStartTimeout, [&]() -> absl::Status {
      ALPHEUS_ASSIGN_OR_RETURN(log_, Log::Open(options));
      return absl::OkStatus();
    });
  }

  std::string name() const override {
    return learning_ == Learning::kByWaiting ? kEmbeddedName
                                             : kEmbeddedCallbackName;
  }
  std::string WhyNot(const Load& load) const override {
    if (load.in_flight == 1 && load.streams == 1) return "";
    return "measured with one record at a time";
  }

  absl::StatusOr<Sample> Run(const Load& load) override {
    const std::string payload(load.bytes, 'Z');
    const double own = CoreMicrosOf(getpid());
    Sample sample;
    int64_t last = NowNanos();
    const int64_t begin = last + load.warm_up_ns;
    int64_t measured_from = 0;
    // A busy machine may append nothing in that time.
    while (last < begin + load.run_ns || sample.latency_us.empty()) {
      const bool is_measured = last >= begin;
      if (is_measured && measured_from == 0) measured_from = last;
      ALPHEUS_RETURN_IF_ERROR(Append(payload));
      const int64_t now = NowNanos();
      if (is_measured) {
        sample.latency_us.push_back(MicrosBetween(last, now));
      }
      ALPHEUS_RETURN_IF_ERROR(Clean(load.bytes));
      last = NowNanos();
    }
    sample.seconds = MicrosBetween(measured_from, last) / 1e6;
    sample.core_us["server"] =
        (CoreMicrosOf(getpid()) - own) * static_cast<double>(load.run_ns) /
        static_cast<double>(load.run_ns + load.warm_up_ns);
    return sample;
  }

 private:
  absl::Status Append(const std::string& payload) {
    if (learning_ == Learning::kByWaiting) {
      return log_->Append(payload).status();
    }
    ALPHEUS_ASSIGN_OR_RETURN(Reservation record, log_->Reserve(payload.size()));
    ALPHEUS_RETURN_IF_ERROR(
        log_->Copy(record, 0, std::as_bytes(std::span(payload))));
    ALPHEUS_ASSIGN_OR_RETURN(const Lsn lsn, log_->Complete(std::move(record)));
    ALPHEUS_RETURN_IF_ERROR(log_->BeginForce(lsn));
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::Status> ended;
    ALPHEUS_RETURN_IF_ERROR(
        log_->OnDurable(lsn, [&](const absl::Status& status) {
          const std::lock_guard lock(mutex);
          ended = status;
          changed.notify_all();
        }));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended.has_value(); });
    return *ended;
  }

  // Cleans each eighth of the ring, as the served log is.
  absl::Status Clean(uint64_t bytes) {
    uncleaned_bytes_ += bytes;
    if (uncleaned_bytes_ < ring_bytes_ / 8) return absl::OkStatus();
    uncleaned_bytes_ = 0;
    return log_->CleanupThrough(log_->durable_lsn());
  }

  const ClusterFolder folder_;
  const uint64_t ring_bytes_;
  const Learning learning_;
  std::vector<PeerProcess> nodes_;
  std::unique_ptr<Log> log_;
  uint64_t uncleaned_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contestant>> Embedded(const std::string& parent,
                                                     uint64_t ring_bytes,
                                                     Learning learning) {
  ALPHEUS_ASSIGN_OR_RETURN(ClusterFolder folder,
                           ClusterFolder::Make({.parent = parent,
                                                .ring_bytes = ring_bytes,
                                                .nodes = kNodes,
                                                .write_quorum = kWriteQuorum}));
  auto made =
      std::make_unique<EmbeddedLog>(std::move(folder), ring_bytes, learning);
  ALPHEUS_RETURN_IF_ERROR(made->Start());
  return made;
}

}  // namespace alpheus::bench::service
