// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/redis_client.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {

std::string RedisCommand(const std::vector<std::string>& words) {
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

std::vector<std::string> RedisServerArguments(const std::string& folder,
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

absl::StatusOr<std::unique_ptr<RedisClient>> RedisClient::Connect(
    uint16_t port) {
  ALPHEUS_ASSIGN_OR_RETURN(RawSocket socket, RawSocket::Connect(port));
  return std::make_unique<RedisClient>(std::move(socket));
}

absl::Status RedisClient::Send(std::string_view commands) const {
  return socket_.Send(std::as_bytes(std::span(commands)));
}

absl::StatusOr<RedisClient::Reply> RedisClient::Receive(Waiting waiting) {
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

absl::StatusOr<RedisClient::Reply> RedisClient::Call(
    const std::vector<std::string>& words) {
  ALPHEUS_RETURN_IF_ERROR(Send(RedisCommand(words)));
  return Receive(Waiting::kBlock);
}

absl::StatusOr<RedisClient::Reply> RedisClient::Checked(redisReply* found) {
  Reply reply(found);
  if (reply->type != REDIS_REPLY_ERROR) return reply;
  return absl::UnavailableError(
      absl::StrCat("redis says: ", std::string(reply->str, reply->len)));
}

}  // namespace alpheus::bench::replicated
