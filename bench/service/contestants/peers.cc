// SPDX-License-Identifier: Apache-2.0
#include "bench/service/contestants/peers.h"

#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/peers/etcd_cluster.h"
#include "bench/replicated/peers/peer_process.h"
#include "bench/replicated/peers/redis.h"
#include "bench/service/cluster/service_cluster.h"
#include "bench/service/load/micros.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {

using replicated::EtcdClient;
using replicated::EtcdCluster;
using replicated::Waiting;

namespace {

// Calls `append` again and again, after a first call that connects; each call
// appends `records`. Errors: its own.
absl::StatusOr<Sample> RunByOne(const Load& load, uint64_t records,
                                const std::function<absl::Status()>& append) {
  ALPHEUS_RETURN_IF_ERROR(append());
  Sample sample;
  int64_t last = NowNanos();
  const int64_t begin = last + load.warm_up_ns;
  int64_t measured_from = 0;
  // A busy machine may append nothing in that time.
  while (last < begin + load.run_ns || sample.latency_us.empty()) {
    const bool is_measured = last >= begin;
    if (is_measured && measured_from == 0) measured_from = last;
    ALPHEUS_RETURN_IF_ERROR(append());
    const int64_t now = NowNanos();
    if (is_measured) {
      sample.latency_us.insert(sample.latency_us.end(), records,
                               MicrosBetween(last, now));
    }
    last = now;
  }
  sample.seconds = MicrosBetween(measured_from, last) / 1e6;
  return sample;
}

class EtcdPuts final : public Contestant {
 public:
  explicit EtcdPuts(std::string folder) : folder_(std::move(folder)) {}

  std::string name() const override { return kEtcdName; }

  absl::StatusOr<Sample> Run(const Load& load) override {
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<EtcdCluster> cluster,
                             EtcdCluster::Start(folder_, kNodes));
    const uint16_t port = cluster->client_port(cluster->leader());
    const std::string payload(load.bytes, 'Z');
    std::mutex mutex;
    Sample all;
    absl::Status failed;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < load.streams * load.in_flight; ++i) {
      threads.emplace_back([&, i] {
        EtcdClient client(port);
        uint64_t puts = 0;
        const auto one = RunByOne(load, 1, [&] {
          return client
              .Put(absl::StrCat("log/", i, "/", ++puts), payload,
                   Waiting::kBlock)
              .status();
        });
        const std::lock_guard lock(mutex);
        if (!one.ok()) {
          failed.Update(one.status());
          return;
        }
        all.latency_us.insert(all.latency_us.end(), one->latency_us.begin(),
                              one->latency_us.end());
        all.seconds +=
            one->seconds / static_cast<double>(load.streams * load.in_flight);
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (!failed.ok()) return failed;
    return all;
  }

 private:
  const std::string folder_;
};

class RedisStream final : public Contestant {
 public:
  explicit RedisStream(std::string folder) : folder_(std::move(folder)) {}

  std::string name() const override { return kRedisName; }
  std::string WhyNot(const Load& load) const override {
    return load.streams == 1 ? "" : "measured with one stream";
  }

  absl::StatusOr<Sample> Run(const Load& load) override {
    const replicated::Work work{.folder = folder_,
                                .backups = kNodes - 1,
                                .write_quorum = kWriteQuorum,
                                .batch = load.in_flight};
    ALPHEUS_ASSIGN_OR_RETURN(
        const std::unique_ptr<replicated::Candidate> candidate,
        replicated::Redis()(work));
    ALPHEUS_RETURN_IF_ERROR(candidate->Begin(load.bytes, Waiting::kBlock));
    ALPHEUS_ASSIGN_OR_RETURN(Sample sample, RunByOne(load, load.in_flight, [&] {
                               return candidate->Append();
                             }));
    ALPHEUS_RETURN_IF_ERROR(candidate->End());
    return sample;
  }

 private:
  const std::string folder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contestant>> Etcd(const std::string& folder) {
  ALPHEUS_RETURN_IF_ERROR(
      replicated::FindProgram("etcd", "etcd-server").status());
  return std::make_unique<EtcdPuts>(folder);
}

absl::StatusOr<std::unique_ptr<Contestant>> Redis(const std::string& folder) {
  ALPHEUS_RETURN_IF_ERROR(replicated::Redis()(replicated::Work{}).status());
  return std::make_unique<RedisStream>(folder);
}

}  // namespace alpheus::bench::service
