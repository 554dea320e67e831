// SPDX-License-Identifier: Apache-2.0
// cutting_proxy: stands between a program and an address, and can be cut: then
// bytes no longer pass, in one direction or in neither, and nobody is told.
//
// Idea: as with a pulled cable, connections stay, and new ones are never
// answered. Bytes sent meanwhile arrive when the link is healed. Used by the
// programs that test for losses of a cluster, and by tests.
//
// Thread safety: one thread; passed_bytes and connections by any. A thread of
// its own moves the bytes.
#ifndef ALPHEUS_TOOLS_NEMESIS_LINKS_CUTTING_PROXY_H_
#define ALPHEUS_TOOLS_NEMESIS_LINKS_CUTTING_PROXY_H_

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
  // Starts a proxy to `target`. Errors: Unavailable (no port).
  static absl::StatusOr<std::unique_ptr<CuttingProxy>> Start(
      const std::string& target);
  ~CuttingProxy();

  // Returns the address to connect to.
  const std::string& address() const { return listener_.address; }

  // Cuts these directions; on return nothing passes in them. Other directions
  // of the last cut are healed.
  void Cut(CutDirection direction = CutDirection::kBoth);
  void Heal();
  // Returns the bytes passed since the start, in both directions.
  uint64_t passed_bytes() const { return passed_bytes_.load(); }
  // Returns how many connections it has taken since the start. Those that are
  // begun while it is cut are taken when it is healed.
  uint64_t connections() const { return connections_.load(); }

 private:
  // One direction of a connection.
  struct Stream {
    fabric::tcp::Descriptor* from = nullptr;
    fabric::tcp::Descriptor* to = nullptr;
    std::vector<std::byte> bytes = {};  // read and not passed on
    bool has_ended = false;             // nothing more will be read
  };
  struct Link {
    fabric::tcp::Descriptor client;
    fabric::tcp::Descriptor server;
    std::array<Stream, 2> streams;  // to the server, to the client
    bool is_broken = false;
  };

  CuttingProxy(std::string target, fabric::tcp::Listener listener);
  void Wake();
  void Run();
  void Wait();
  void Accept();
  void Pass(Link* link, Stream* stream);
  static bool IsCut(CutDirection cut, size_t stream) {
    return ((static_cast<size_t>(cut) >> stream) & 1) != 0;
  }

  const std::string target_;
  const fabric::tcp::Listener listener_;
  const fabric::tcp::Descriptor wake_;
  std::atomic<CutDirection> cut_ = CutDirection::kNone;
  // Cut that the thread has seen: no turn with another one is running.
  std::atomic<CutDirection> seen_cut_ = CutDirection::kNone;
  std::atomic<bool> ends_ = false;
  std::atomic<uint64_t> passed_bytes_ = 0;
  std::atomic<uint64_t> connections_ = 0;
  std::list<Link> links_;  // of the thread; pointers to them exist
  std::thread thread_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_LINKS_CUTTING_PROXY_H_
