// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/copy_sink.h"

#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/floor_replica.h"
#include "bench/replicated/candidates/raw_socket.h"
#include "log/base/status_macros.h"
#include "log/format/checksum.h"

namespace alpheus::bench::replicated {
namespace {

absl::Status ReceiveAll(const RawSocket& socket, FloorReplica& replica,
                        std::span<std::byte> into) {
  const int fd = socket.fd();
  while (!into.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(const size_t got, socket.Receive(into));
    replica.Persist(into.first(got));
    into = into.subspan(got);
    if (got == 0) WaitForAny(std::span(&fd, 1), Waiting::kBlock);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServeSink(const std::string& folder, uint64_t bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(FloorReplica replica,
                           FloorReplica::Make(folder, bytes));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket listener, RawSocket::Listen());
  ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, listener.Port());
  AnnounceAddress(absl::StrCat(port));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket socket, listener.Accept());
  const std::span<std::byte> into = replica.bytes().first(bytes);
  ALPHEUS_RETURN_IF_ERROR(ReceiveAll(socket, replica, into));
  const uint32_t sum = Crc32c(0, into);
  ALPHEUS_RETURN_IF_ERROR(socket.Send(std::as_bytes(std::span(&sum, 1))));
  // Until it was read there.
  std::array<std::byte, 1> end{};
  const int fd = socket.fd();
  while (socket.Receive(end).ok()) {
    WaitForAny(std::span(&fd, 1), Waiting::kBlock);
  }
  return absl::OkStatus();
}

absl::Status FillSink(const std::string& address,
                      std::span<const std::byte> bytes) {
  uint32_t port = 0;
  if (!absl::SimpleAtoi(address, &port)) {
    return absl::UnavailableError(absl::StrCat(
        "a sink of copies says \"", address, "\" instead of its port"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket socket,
                           RawSocket::Connect(static_cast<uint16_t>(port)));
  ALPHEUS_RETURN_IF_ERROR(socket.Send(bytes));
  uint32_t sum = 0;
  std::span<std::byte> rest = std::as_writable_bytes(std::span(&sum, 1));
  const int fd = socket.fd();
  while (!rest.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(const size_t got, socket.Receive(rest));
    rest = rest.subspan(got);
    if (got == 0) WaitForAny(std::span(&fd, 1), Waiting::kBlock);
  }
  if (sum == Crc32c(0, bytes)) return absl::OkStatus();
  return absl::DataLossError(
      "a sink of copies has other bytes than were sent to it");
}

}  // namespace alpheus::bench::replicated
