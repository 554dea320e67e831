// SPDX-License-Identifier: Apache-2.0
// cutting_proxy: stands between a program and an address, and can be cut: then
// bytes no longer pass, in one direction or in neither, and nobody is told.
//
// Idea: as with a cable that is pulled, connections stay as they are, and new
// ones are never answered; what was sent meanwhile arrives when it is healed.
// The programs use it that look for what a cluster loses, and tests.
//
// Thread safety: one thread; passed_bytes also others. A thread of its own
// moves the bytes.
#ifndef ALPHEUS_TOOLS_NEMESIS_CUTTING_PROXY_H_
#define ALPHEUS_TOOLS_NEMESIS_CUTTING_PROXY_H_

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

namespace alpheus::demo {

enum class CutDirection : uint8_t {
  kNone = 0,
  kToServer = 1,
  kToClient = 2,
  kBoth = 3,
};

class CuttingProxy {
 public:
  // To `target`. Errors: Unavailable (no port).
  static absl::StatusOr<std::unique_ptr<CuttingProxy>> Start(
      const std::string& target);
  ~CuttingProxy();

  // Whom it is to be reached at.
  const std::string& address() const { return listener_.address; }

  // Nothing passes in these directions any more when it returns; those of the
  // last cut are healed if they are not among them.
  void Cut(CutDirection direction = CutDirection::kBoth);
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
    std::array<Stream, 2> streams;  // to the server, to the client
    bool is_broken = false;
  };

  CuttingProxy(std::string target, tcp::Listener listener);
  void Wake();
  void Run();
  void Wait();
  void Accept();
  void Pass(Link* link, Stream* stream);
  static bool IsCut(CutDirection cut, size_t stream) {
    return ((static_cast<size_t>(cut) >> stream) & 1) != 0;
  }

  const std::string target_;
  const tcp::Listener listener_;
  const tcp::Descriptor wake_;
  std::atomic<CutDirection> cut_ = CutDirection::kNone;
  // No turn with another one goes on.
  std::atomic<CutDirection> seen_cut_ = CutDirection::kNone;
  std::atomic<bool> ends_ = false;
  std::atomic<uint64_t> passed_bytes_ = 0;
  std::list<Link> links_;  // of the thread; they are pointed into
  std::thread thread_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_CUTTING_PROXY_H_
