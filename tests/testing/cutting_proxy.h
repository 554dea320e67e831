// SPDX-License-Identifier: Apache-2.0
// cutting_proxy: stands between a program and an address, and can be cut: then
// bytes no longer pass, in neither direction, and nobody is told.
//
// Idea: as with a cable that is pulled, connections stay as they are, and new
// ones are never answered; what was sent meanwhile arrives when it is healed.
//
// Thread safety: one thread; passed_bytes also others. A thread of its own
// moves the bytes.
#ifndef ALPHEUS_TESTS_TESTING_CUTTING_PROXY_H_
#define ALPHEUS_TESTS_TESTING_CUTTING_PROXY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "replication/fabric/tcp/socket.h"

namespace alpheus::testing {

class CuttingProxy {
 public:
  // To `target`. Errors: Unavailable (no port).
  static absl::StatusOr<std::unique_ptr<CuttingProxy>> Start(
      const std::string& target);
  ~CuttingProxy();

  // Whom it is to be reached at.
  const std::string& address() const { return listener_.address; }

  // Nothing passes any more when it returns.
  void Cut();
  void Heal();
  // Since the start, in both directions.
  uint64_t passed_bytes() const { return passed_bytes_.load(); }

 private:
  // One direction of a connection.
  struct Stream {
    tcp::Descriptor* from = nullptr;
    tcp::Descriptor* to = nullptr;
    std::vector<std::byte> bytes = {};  // read and not passed on
    bool has_ended = false;             // nothing more will be read
  };
  struct Link {
    tcp::Descriptor client;
    tcp::Descriptor server;
    std::array<Stream, 2> streams;
    bool is_broken = false;
  };

  CuttingProxy(std::string target, tcp::Listener listener);
  void Wake();
  void Run();
  void Wait();
  void Accept();
  void Pass(Link* link, Stream* stream);

  const std::string target_;
  const tcp::Listener listener_;
  const tcp::Descriptor wake_;
  std::atomic<bool> is_cut_ = false;
  std::atomic<bool> has_seen_cut_ = false;  // no turn goes on
  std::atomic<bool> ends_ = false;
  std::atomic<uint64_t> passed_bytes_ = 0;
  std::list<Link> links_;  // of the thread; they are pointed into
  std::thread thread_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TESTING_CUTTING_PROXY_H_
