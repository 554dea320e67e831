// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/peers/redis.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/failover/times.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/peers/peer_process.h"
#include "bench/replicated/peers/redis_client.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {

using replicated::FreePorts;
using replicated::PeerProcess;
using replicated::RedisClient;
using replicated::ScratchFolder;

namespace {

constexpr int kRedisServers = 3;  // the first one is primary first
constexpr std::chrono::milliseconds kRedisStartTimeout{30'000};
constexpr std::chrono::microseconds kAskRedisAgain{500};

// One primary, its replicas and the Sentinels, for one fail-over.
class RedisServers {
 public:
  RedisServers(std::string program, uint32_t silence_ms)
      : program_(std::move(program)),
        silence_ms_(silence_ms),
        payload_(kPayloadBytes, 'Z') {}

  // Starts all; returns when the Sentinels know each other and all servers.
  absl::Status Start(const std::string& parent) {
    ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
    folder_.emplace(std::move(folder));
    ALPHEUS_ASSIGN_OR_RETURN(ports_, FreePorts(kRedisServers));
    ALPHEUS_ASSIGN_OR_RETURN(sentinel_ports_, FreePorts(kRedisServers));
    for (const uint16_t port : ports_) {
      const std::string own = FolderOf(port);
      ALPHEUS_RETURN_IF_ERROR(StartOne(
          own, replicated::RedisServerArguments(own, port, ports_.front()),
          servers_));
    }
    clients_.resize(kRedisServers);
    ALPHEUS_RETURN_IF_ERROR(
        replicated::AwaitReady(servers_, kRedisStartTimeout,
                               [&] { return Write(0, kRedisServers - 1); }));
    // Sentinels ask for the replicas once, and then each 10 s.
    for (const uint16_t port : sentinel_ports_) {
      const std::string own = FolderOf(port);
      ALPHEUS_RETURN_IF_ERROR(WriteSentinelFile(own, port));
      ALPHEUS_RETURN_IF_ERROR(StartOne(
          own, {absl::StrCat(own, ".conf"), "--sentinel"}, sentinels_));
    }
    sentinel_clients_.resize(kRedisServers);
    return replicated::AwaitReady(sentinels_, kRedisStartTimeout,
                                  [&] { return CheckSentinels(); });
  }

  // Writes a record that this server and so many replicas have synced. Errors:
  // Unavailable.
  absl::Status Write(size_t server, int replicas = 1) {
    const absl::Status written = TryToWrite(server, replicas);
    if (!written.ok()) clients_[server].reset();
    return written;
  }

  absl::Status Lose(Fault fault) {
    switch (fault) {
      case Fault::kKill:
        servers_.front().Signal(SIGKILL);
        return absl::OkStatus();
      case Fault::kStop:
        servers_.front().Signal(SIGSTOP);
        return absl::OkStatus();
      case Fault::kDrain:
        return sentinel_clients_.front()
            ->Call({"SENTINEL", "FAILOVER", "log"})
            .status();
      case Fault::kCut:
        break;
    }
    return absl::InvalidArgumentError("redis: no such fault");
  }

  // Returns once another server than the first is primary and has written.
  absl::Status WriteToTheNext() {
    absl::Status last;
    const int64_t end =
        NowNanos() + std::chrono::nanoseconds(kFailOverTimeout).count();
    while (NowNanos() < end) {
      for (size_t i = 1; i < ports_.size(); ++i) {
        last = CheckIsPrimary(i);
        if (last.ok()) last = Write(i);
        if (last.ok()) return last;
      }
      std::this_thread::sleep_for(kAskRedisAgain);
    }
    return absl::DeadlineExceededError(
        absl::StrCat("redis: no other primary within ",
                     std::chrono::seconds(kFailOverTimeout).count(),
                     " s: ", last.message()));
  }

 private:
  using Clients = std::vector<std::unique_ptr<RedisClient>>;

  std::string FolderOf(uint16_t port) const {
    return absl::StrCat(folder_->path(), "/", port);
  }

  absl::Status StartOne(const std::string& own,
                        const std::vector<std::string>& arguments,
                        std::vector<PeerProcess>& processes) const {
    std::error_code ignored;  // without it, the server says so
    std::filesystem::create_directory(own, ignored);
    ALPHEUS_ASSIGN_OR_RETURN(
        PeerProcess process,
        PeerProcess::Start(program_, arguments, absl::StrCat(own, ".log")));
    processes.push_back(std::move(process));
    return absl::OkStatus();
  }

  absl::Status WriteSentinelFile(const std::string& own, uint16_t port) const {
    const std::string path = absl::StrCat(own, ".conf");
    std::ofstream file(path);
    file << "port " << port << "\nbind 127.0.0.1\ndir " << folder_->path()
         << "\nloglevel warning\nsentinel monitor log 127.0.0.1 "
         << ports_.front() << " 2\nsentinel down-after-milliseconds log "
         << silence_ms_ << "\nsentinel failover-timeout log 10000\n"
         << "sentinel parallel-syncs log 2\n";
    file.close();
    if (file) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
  }

  static absl::StatusOr<RedisClient*> Connected(
      const std::vector<uint16_t>& ports, size_t i, Clients& clients) {
    if (clients[i] == nullptr) {
      ALPHEUS_ASSIGN_OR_RETURN(clients[i], RedisClient::Connect(ports[i]));
    }
    return clients[i].get();
  }

  absl::Status TryToWrite(size_t server, int replicas) {
    ALPHEUS_ASSIGN_OR_RETURN(RedisClient* const client,
                             Connected(ports_, server, clients_));
    ALPHEUS_RETURN_IF_ERROR(
        client->Call({"XADD", "log", "*", "r", payload_}).status());
    ALPHEUS_ASSIGN_OR_RETURN(
        const RedisClient::Reply waited,
        client->Call({"WAIT", absl::StrCat(replicas), "100"}));
    if (waited->integer >= replicas) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "redis: ", waited->integer, " replicas have it, expected ", replicas));
  }

  // Sentinels close the connections of a server that they promote.
  absl::Status CheckIsPrimary(size_t server) {
    const absl::Status checked = [&]() -> absl::Status {
      ALPHEUS_ASSIGN_OR_RETURN(RedisClient* const client,
                               Connected(ports_, server, clients_));
      ALPHEUS_ASSIGN_OR_RETURN(const RedisClient::Reply role,
                               client->Call({"ROLE"}));
      if (role->elements > 0 &&
          std::string_view(role->element[0]->str, role->element[0]->len) ==
              "master") {
        return absl::OkStatus();
      }
      return absl::FailedPreconditionError("redis: a replica");
    }();
    if (!checked.ok() && !absl::IsFailedPrecondition(checked)) {
      clients_[server].reset();
    }
    return checked;
  }

  absl::Status CheckSentinels() {
    for (size_t i = 0; i < sentinel_ports_.size(); ++i) {
      const absl::Status checked = CheckSentinel(i);
      if (checked.ok()) continue;
      sentinel_clients_[i].reset();
      return checked;
    }
    return absl::OkStatus();
  }

  absl::Status CheckSentinel(size_t i) {
    ALPHEUS_ASSIGN_OR_RETURN(RedisClient* const client,
                             Connected(sentinel_ports_, i, sentinel_clients_));
    ALPHEUS_ASSIGN_OR_RETURN(const RedisClient::Reply quorum,
                             client->Call({"SENTINEL", "CKQUORUM", "log"}));
    const std::string_view said(quorum->str, quorum->len);
    if (!absl::StrContains(absl::string_view(said.data(), said.size()),
                           absl::StrCat(kRedisServers, " usable"))) {
      return absl::UnavailableError(
          absl::StrCat("redis: a Sentinel says: ", std::string(said)));
    }
    ALPHEUS_ASSIGN_OR_RETURN(const RedisClient::Reply replicas,
                             client->Call({"SENTINEL", "REPLICAS", "log"}));
    if (replicas->elements == kRedisServers - 1) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "redis: a Sentinel knows ", replicas->elements, " replicas"));
  }

  const std::string program_;
  const uint32_t silence_ms_;
  const std::string payload_;
  std::optional<ScratchFolder> folder_;
  std::vector<uint16_t> ports_;
  std::vector<uint16_t> sentinel_ports_;
  std::vector<PeerProcess> servers_;
  std::vector<PeerProcess> sentinels_;
  Clients clients_;           // by server; nullptr: none yet
  Clients sentinel_clients_;  // by Sentinel
};

class RedisContestant final : public Contestant {
 public:
  RedisContestant(std::string folder, std::string program, uint32_t silence_ms)
      : folder_(std::move(folder)),
        program_(std::move(program)),
        silence_ms_(silence_ms) {}

  std::string name() const override { return kRedisName; }
  int TriesMax(const absl::Status& /*ended*/) const override {
    return kPeerTriesMax;
  }
  std::string WhyNot(Fault fault) const override {
    if (fault != Fault::kCut) return "";
    return "the sockets of another program are cut off by root only";
  }

  absl::StatusOr<Parts> Run(Fault fault, uint64_t /*log_mib*/) override {
    RedisServers servers(program_, silence_ms_);
    ALPHEUS_RETURN_IF_ERROR(servers.Start(folder_));
    const int64_t load_end =
        NowNanos() + std::chrono::nanoseconds(LoadTime()).count();
    while (NowNanos() < load_end) {
      ALPHEUS_RETURN_IF_ERROR(servers.Write(0));
    }
    const int64_t begin = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(servers.Lose(fault));
    ALPHEUS_RETURN_IF_ERROR(servers.WriteToTheNext());
    return Parts{{"total", MillisBetween(begin, NowNanos())}};
  }

 private:
  const std::string folder_;
  const std::string program_;
  const uint32_t silence_ms_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contestant>> Redis(std::string folder,
                                                  uint32_t silence_ms) {
  ALPHEUS_ASSIGN_OR_RETURN(
      std::string program,
      replicated::FindProgram("redis-server", "redis-server"));
  return std::make_unique<RedisContestant>(std::move(folder),
                                           std::move(program), silence_ms);
}

}  // namespace alpheus::bench::failover
