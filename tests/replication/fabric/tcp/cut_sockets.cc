// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/fabric/tcp/cut_sockets.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "absl/strings/numbers.h"
#include "log/base/check.h"

namespace alpheus::testing {
namespace {

// Where an IPv4 header has its source address.
constexpr uint32_t kSourceAddress =
    static_cast<uint32_t>(SKF_NET_OFF) + uint32_t{12};

in_addr Address(const std::string& host) {
  in_addr address;
  ALPHEUS_CHECK(inet_pton(AF_INET, host.c_str(), &address) == 1,
                "a host is an IPv4 address");
  return address;
}

std::vector<int> SocketsOf(const std::string& host) {
  std::vector<int> sockets;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    int descriptor = -1;
    ALPHEUS_CHECK(
        absl::SimpleAtoi(entry.path().filename().string(), &descriptor),
        "/proc names descriptors by number");
    sockaddr_in local = {};
    socklen_t bytes = sizeof(local);
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &bytes) ==
            0 &&
        local.sin_family == AF_INET &&
        local.sin_addr.s_addr == Address(host).s_addr) {
      sockets.push_back(descriptor);
    }
  }
  return sockets;
}

// A filter returns how many bytes of a packet the socket gets.
std::vector<sock_filter> Filter(const std::set<std::string>& cut_off) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSourceAddress)};
  for (const std::string& host : cut_off) {
    filter.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(Address(host).s_addr), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, UINT32_MAX));
  return filter;
}

}  // namespace

void DropPackets(const std::string& host,
                 const std::set<std::string>& cut_off) {
  std::vector<sock_filter> filter = Filter(cut_off);
  const sock_fprog program = {.len = static_cast<unsigned short>(filter.size()),
                              .filter = filter.data()};
  for (const int socket : SocketsOf(host)) {
    ALPHEUS_CHECK(setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                             sizeof(program)) == 0,
                  "the kernel filters sockets");
  }
}

bool HasPacketsInFlight(const std::string& host) {
  for (const int socket : SocketsOf(host)) {
    tcp_info info = {};
    socklen_t bytes = sizeof(info);
    ALPHEUS_CHECK(getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0,
                  "the kernel tells the state of its own connections");
    if (info.tcpi_state != TCP_LISTEN && info.tcpi_unacked > 0) return true;
  }
  return false;
}

}  // namespace alpheus::testing
