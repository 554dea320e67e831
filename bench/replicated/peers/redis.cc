// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/redis.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/peers/peer_process.h"
#include "bench/replicated/peers/redis_client.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr std::chrono::milliseconds kRedisStartTimeout{20'000};
// Entries that the stream keeps, about: a log is cleaned as well.
constexpr const char* kEntriesMax = "10000";

class RedisCandidate final : public Candidate {
 public:
  RedisCandidate(const Work& work, std::string program)
      : work_(work), program_(std::move(program)) {}

  std::string name() const override { return kRedisName; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    waiting_ = waiting;
    const std::string add =
        RedisCommand({"XADD", "log", "MAXLEN", "~", kEntriesMax, "*", "r",
                      std::string(payload_bytes, 'Z')});
    commands_.clear();
    for (uint64_t i = 0; i < work_.batch; ++i) commands_ += add;
    commands_ += RedisCommand({"WAIT", absl::StrCat(work_.copies() - 1), "0"});
    return StartPeers([&] { return StartServers(); }, [&] { return End(); });
  }

  absl::Status Append() override {
    ALPHEUS_RETURN_IF_ERROR(client_->Send(commands_));
    for (uint64_t i = 0; i < work_.batch; ++i) {
      ALPHEUS_RETURN_IF_ERROR(client_->Receive(waiting_).status());
    }
    return ReceiveWaited(waiting_, work_.copies() - 1);
  }

  absl::Status End() override {
    client_.reset();
    servers_.clear();
    folder_.reset();
    return absl::OkStatus();
  }

 private:
  absl::Status StartServers() {
    ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder,
                             ScratchFolder::Make(work_.folder));
    folder_.emplace(std::move(folder));
    ALPHEUS_ASSIGN_OR_RETURN(const std::vector<uint16_t> ports,
                             FreePorts(work_.backups + 1));
    for (const uint16_t port : ports) {
      const std::string own = absl::StrCat(folder_->path(), "/", port);
      std::error_code ignored;  // without it, the server says so
      std::filesystem::create_directory(own, ignored);
      ALPHEUS_ASSIGN_OR_RETURN(
          PeerProcess server,
          PeerProcess::Start(program_,
                             RedisServerArguments(own, port, ports.front()),
                             absl::StrCat(own, ".log")));
      servers_.push_back(std::move(server));
    }
    return AwaitReady(servers_, kRedisStartTimeout,
                      [&] { return CheckReplicas(ports.front()); });
  }

  // An entry that all of them have.
  absl::Status CheckReplicas(uint16_t port) {
    if (client_ == nullptr) {
      ALPHEUS_ASSIGN_OR_RETURN(client_, RedisClient::Connect(port));
    }
    ALPHEUS_RETURN_IF_ERROR(client_->Send(
        RedisCommand({"XADD", "log", "*", "r", "ready"}) +
        RedisCommand({"WAIT", absl::StrCat(work_.backups), "50"})));
    ALPHEUS_RETURN_IF_ERROR(client_->Receive(Waiting::kBlock).status());
    return ReceiveWaited(Waiting::kBlock, work_.backups);
  }

  absl::Status ReceiveWaited(Waiting waiting, int needed) {
    ALPHEUS_ASSIGN_OR_RETURN(const RedisClient::Reply waited,
                             client_->Receive(waiting));
    if (waited->integer >= needed) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "redis: ", waited->integer, " replicas have it instead of ", needed));
  }

  const Work work_;
  const std::string program_;
  Waiting waiting_ = Waiting::kBlock;
  std::string commands_;  // of one Append
  std::optional<ScratchFolder> folder_;
  std::vector<PeerProcess> servers_;
  std::unique_ptr<RedisClient> client_;
};

}  // namespace

MakeCandidate Redis() {
  return [](const Work& work) -> absl::StatusOr<std::unique_ptr<Candidate>> {
    ALPHEUS_ASSIGN_OR_RETURN(std::string program,
                             FindProgram("redis-server", "redis-server"));
    return std::make_unique<RedisCandidate>(work, std::move(program));
  };
}

}  // namespace alpheus::bench::replicated
