// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/redis.h"

#include <hiredis/hiredis.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/candidates/raw_socket.h"
#include "bench/replicated/peers/peer_process.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr std::chrono::milliseconds kStartTimeout{20'000};
constexpr size_t kReceiveOnceBytes = size_t{64} << 10;
// Entries that the stream keeps, about: a log is cleaned as well.
constexpr const char* kEntriesMax = "10000";

struct FreeReader {
  void operator()(redisReader* reader) const { redisReaderFree(reader); }
};
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

// hiredis formats and parses; all candidates share the socket and the way of
// waiting.
class RedisClient {
 public:
  static absl::StatusOr<std::unique_ptr<RedisClient>> Connect(uint16_t port) {
    ALPHEUS_ASSIGN_OR_RETURN(RawSocket socket, RawSocket::Connect(port));
    return std::make_unique<RedisClient>(std::move(socket));
  }

  explicit RedisClient(RawSocket socket)
      : socket_(std::move(socket)), reader_(redisReaderCreate()) {}

  absl::Status Send(std::string_view commands) const {
    return socket_.Send(std::as_bytes(std::span(commands)));
  }

  // The next reply; it must not be an error.
  using Reply = std::unique_ptr<redisReply, FreeReply>;
  absl::StatusOr<Reply> Receive(Waiting waiting) {
    const int fd = socket_.fd();
    for (;;) {
      void* found = nullptr;
      if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK) {
        return absl::UnavailableError(
            absl::StrCat("redis: no reply: ", reader_->errstr));
      }
      if (found != nullptr) return Checked(static_cast<redisReply*>(found));
      ALPHEUS_ASSIGN_OR_RETURN(const size_t got, socket_.Receive(buffer_));
      if (got == 0) {
        WaitForAny(std::span(&fd, 1), waiting);
      } else if (redisReaderFeed(reader_.get(),
                                 reinterpret_cast<const char*>(buffer_.data()),
                                 got) != REDIS_OK) {
        return absl::UnavailableError(
            absl::StrCat("redis: no reply: ", reader_->errstr));
      }
    }
  }

 private:
  static absl::StatusOr<Reply> Checked(redisReply* found) {
    Reply reply(found);
    if (reply->type != REDIS_REPLY_ERROR) return reply;
    return absl::UnavailableError(
        absl::StrCat("redis says: ", std::string(reply->str, reply->len)));
  }

  RawSocket socket_;
  std::unique_ptr<redisReader, FreeReader> reader_;
  std::array<std::byte, kReceiveOnceBytes> buffer_{};
};

// One command as Redis wants it.
std::string Command(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* formatted = nullptr;
  const auto bytes = redisFormatCommandArgv(
      &formatted, static_cast<int>(words.size()), texts.data(), sizes.data());
  std::string command(formatted, static_cast<size_t>(bytes));
  redisFreeCommand(formatted);
  return command;
}

std::vector<std::string> ServerArguments(const std::string& folder,
                                         uint16_t port, uint16_t primary) {
  std::vector<std::string> arguments = {
      "--port",
      absl::StrCat(port),
      "--bind",
      "127.0.0.1",
      "--dir",
      folder,
      "--appendonly",
      "yes",
      "--appendfsync",
      "always",
      // No background work during the measurement.
      "--save",
      "",
      "--auto-aof-rewrite-percentage",
      "0",
      "--repl-diskless-sync-delay",
      "0",
      "--loglevel",
      "warning",
  };
  if (port != primary) {
    arguments.insert(arguments.end(),
                     {"--replicaof", "127.0.0.1", absl::StrCat(primary)});
  }
  return arguments;
}

class RedisCandidate final : public Candidate {
 public:
  RedisCandidate(const Work& work, std::string program)
      : work_(work), program_(std::move(program)) {}

  std::string name() const override { return kRedisName; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    waiting_ = waiting;
    const std::string add =
        Command({"XADD", "log", "MAXLEN", "~", kEntriesMax, "*", "r",
                 std::string(payload_bytes, 'Z')});
    commands_.clear();
    for (uint64_t i = 0; i < work_.batch; ++i) commands_ += add;
    commands_ += Command({"WAIT", absl::StrCat(work_.copies() - 1), "0"});
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
                             ServerArguments(own, port, ports.front()),
                             absl::StrCat(own, ".log")));
      servers_.push_back(std::move(server));
    }
    return AwaitReady(servers_, kStartTimeout,
                      [&] { return CheckReplicas(ports.front()); });
  }

  // An entry that all of them have.
  absl::Status CheckReplicas(uint16_t port) {
    if (client_ == nullptr) {
      ALPHEUS_ASSIGN_OR_RETURN(client_, RedisClient::Connect(port));
    }
    ALPHEUS_RETURN_IF_ERROR(
        client_->Send(Command({"XADD", "log", "*", "r", "ready"}) +
                      Command({"WAIT", absl::StrCat(work_.backups), "50"})));
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
