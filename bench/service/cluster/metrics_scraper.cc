// SPDX-License-Identifier: Apache-2.0
#include "bench/service/cluster/metrics_scraper.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/pmem/file_descriptor.h"

namespace alpheus::bench::service {
namespace {

constexpr timeval kPatience{.tv_sec = 30, .tv_usec = 0};

absl::Status Failed(const std::string& address, const char* call) {
  return absl::UnavailableError(absl::StrCat("metrics of ", address, ": ", call,
                                             ": ", std::strerror(errno)));
}

absl::StatusOr<FileDescriptor> Connect(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  uint32_t port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics of ", address, ": no IPv4 address and port"));
  }
  to.sin_port = htons(static_cast<uint16_t>(port));
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return Failed(address, "socket");
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) !=
      0) {
    return Failed(address, "connect");
  }
  return fd;
}

absl::Status Scrape(const std::string& address) {
  ALPHEUS_ASSIGN_OR_RETURN(const FileDescriptor fd, Connect(address));
  const std::string request =
      absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", address,
                   "\r\nConnection: close\r\n\r\n");
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return Failed(address, "send");
  }
  std::string answer;
  std::array<char, 65'536> part{};
  for (;;) {
    const ssize_t bytes = recv(fd.get(), part.data(), part.size(), 0);
    if (bytes < 0) return Failed(address, "recv");
    if (bytes == 0) break;
    answer.append(part.data(), static_cast<size_t>(bytes));
  }
  if (absl::StrContains(answer, " 200 OK") &&
      absl::StrContains(answer, "alpheus_build_info")) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "metrics of ", address, ": the answer has none: ", answer.substr(0, 80)));
}

}  // namespace

MetricsScraper::MetricsScraper(std::vector<std::string> addresses,
                               std::chrono::milliseconds interval)
    : addresses_(std::move(addresses)),
      interval_(interval),
      thread_([this] { Run(); }) {}

MetricsScraper::~MetricsScraper() { Stop().IgnoreError(); }

absl::StatusOr<uint64_t> MetricsScraper::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (!failed_.ok()) return failed_;
  return answers_;
}

void MetricsScraper::Run() {
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    for (const std::string& address : addresses_) {
      const absl::Status scraped = Scrape(address);
      const std::lock_guard lock(mutex_);
      if (scraped.ok()) {
        ++answers_;
      } else if (failed_.ok()) {
        failed_ = scraped;
      }
    }
    next += interval_;
    std::unique_lock lock(mutex_);
    if (stopped_.wait_until(lock, next, [this] { return is_stopped_; })) return;
  }
}

}  // namespace alpheus::bench::service
