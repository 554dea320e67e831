// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/copy_server.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/raw_socket.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"
#include "log/pmem/region.h"

namespace alpheus::bench::replicated {

absl::Status ServeCopy(const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(const Region region, Region::OpenForReading(path));
  ALPHEUS_ASSIGN_OR_RETURN(const Layout layout,
                           Layout::ForRegion(region.bytes().size()));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket listener, RawSocket::Listen());
  ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, listener.Port());
  AnnounceAddress(absl::StrCat(port));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket socket, listener.Accept());
  return socket.Send(
      region.bytes().subspan(layout.ring_offset, layout.ring_capacity));
}

absl::Status FetchCopy(const std::string& address, std::span<std::byte> into) {
  uint32_t port = 0;
  if (!absl::SimpleAtoi(address, &port)) {
    return absl::UnavailableError(absl::StrCat(
        "a server of copies says \"", address, "\" instead of its port"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket socket,
                           RawSocket::Connect(static_cast<uint16_t>(port)));
  const int fd = socket.fd();
  while (!into.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(const size_t got, socket.Receive(into));
    into = into.subspan(got);
    if (got == 0) WaitForAny(std::span(&fd, 1), Waiting::kBlock);
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
