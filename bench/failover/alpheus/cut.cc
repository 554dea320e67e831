// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/alpheus/cut.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/system_error.h"

namespace alpheus::bench::failover {
namespace {

// Order: set before the sockets are listed. One that is connected meanwhile is
// in the list or sees this, or both.
std::atomic<bool> is_cut_off{false};

// Others may close descriptors meanwhile: then there is nothing to drop.
void DropAll(int socket) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {.len = 1, .filter = &nothing};
  setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

std::vector<int> Descriptors() {
  std::vector<int> all;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int descriptor = -1;
    if (absl::SimpleAtoi(entry.path().filename().string(), &descriptor)) {
      all.push_back(descriptor);
    }
  }
  return all;
}

using NameOfSocket = int(int, sockaddr*, socklen_t*);

// Returns the port that getsockname or getpeername tells; nothing: it is no
// IPv4 socket, or not connected.
std::optional<uint16_t> PortBy(NameOfSocket* name, int socket) {
  sockaddr_in address = {};
  socklen_t bytes = sizeof(address);
  if (name(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0 ||
      address.sin_family != AF_INET) {
    return std::nullopt;
  }
  return ntohs(address.sin_port);
}

sigset_t CutSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, CutSignal());
  return signals;
}

}  // namespace

int CutSignal() { return SIGUSR1; }

absl::Status OnCutSignal(std::function<void()> cut) {
  const sigset_t signals = CutSignals();
  if (pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return replicated::SystemError("pthread_sigmask");
  }
  std::thread([cut = std::move(cut)] {
    const sigset_t awaited = CutSignals();
    int signal = 0;
    if (sigwait(&awaited, &signal) == 0) cut();
  }).detach();
  return absl::OkStatus();
}

void CutOff(Notes& notes) {
  is_cut_off.store(true);
  uint32_t count = 0;
  for (const int descriptor : Descriptors()) {
    const std::optional<uint16_t> port = PortBy(getsockname, descriptor);
    if (!port.has_value()) continue;
    DropAll(descriptor);
    if (count < kPortsMax) notes.ports[count++].store(*port);
  }
  notes.port_count.store(count);
  notes.cut_ns.store(NowNanos());
}

void DropCutPorts(Notes& notes) {
  std::vector<uint16_t> ports;
  for (uint32_t i = 0; i < notes.port_count.load(); ++i) {
    ports.push_back(notes.ports[i].load());
  }
  for (const int descriptor : Descriptors()) {
    const std::optional<uint16_t> peer = PortBy(getpeername, descriptor);
    if (peer.has_value() && std::ranges::find(ports, *peer) != ports.end()) {
      DropAll(descriptor);
    }
  }
  notes.cut_ns.store(NowNanos());
}

}  // namespace alpheus::bench::failover

// The linker's names: __wrap_ is called in place of, __real_ is, the call.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

int __real_connect(int fd, const sockaddr* address, socklen_t bytes);
int __wrap_connect(int fd, const sockaddr* address, socklen_t bytes) {
  namespace failover = alpheus::bench::failover;
  if (failover::is_cut_off.load()) failover::DropAll(fd);
  return __real_connect(fd, address, bytes);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
