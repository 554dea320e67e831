// SPDX-License-Identifier: Apache-2.0
// redis_client: commands to a server of Redis, or a Sentinel, and their
// replies.
//
// Idea: hiredis formats and parses; all candidates share the socket and the way
// of waiting.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_CLIENT_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_CLIENT_H_

#include <hiredis/hiredis.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/raw_socket.h"

namespace alpheus::bench::replicated {

// Returns one command as Redis wants it.
std::string RedisCommand(const std::vector<std::string>& words);

// Returns the arguments of a server whose append-only file is synced before it
// answers. One with another port than `primary` is its replica.
std::vector<std::string> RedisServerArguments(const std::string& folder,
                                              uint16_t port, uint16_t primary);

class RedisClient {
 public:
  struct FreeReply {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, FreeReply>;

  // Errors of all calls: Unavailable; OutOfRange (the server has closed).
  static absl::StatusOr<std::unique_ptr<RedisClient>> Connect(uint16_t port);
  explicit RedisClient(RawSocket socket)
      : socket_(std::move(socket)), reader_(redisReaderCreate()) {}

  absl::Status Send(std::string_view commands) const;
  // Returns the next reply; it must not be an error.
  absl::StatusOr<Reply> Receive(Waiting waiting);
  // Sends one command, and blocks until it is replied to.
  absl::StatusOr<Reply> Call(const std::vector<std::string>& words);

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  static constexpr size_t kReceiveOnceBytes = size_t{64} << 10;

  static absl::StatusOr<Reply> Checked(redisReply* found);

  RawSocket socket_;
  std::unique_ptr<redisReader, FreeReader> reader_;
  std::array<std::byte, kReceiveOnceBytes> buffer_{};
};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_CLIENT_H_
