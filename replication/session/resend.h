// SPDX-License-Identifier: Apache-2.0
// resend: the repair of a record that was damaged on its way to a backup.
//
// Idea: the backup has summed the record (BS6 of backup_session.h),
// acknowledges nothing from it on, and asks for its bytes. The primary writes
// them again, from its own ring to the same place, and then sends a notice.
// Bytes arrive in order, so they are there when the notice is. So damage costs
// a round trip and no session, and, if all backups have it at once, no epoch.
//
// Thread safety: values and pure functions.
// References: docs/design/replication.md, "Payloads, from end to end".
#ifndef ALPHEUS_REPLICATION_SESSION_RESEND_H_
#define ALPHEUS_REPLICATION_SESSION_RESEND_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "replication/wire/ack.h"
#include "replication/wire/summed_words.h"

namespace alpheus::replication {

// Sent by the backup in place of an ack: asks for one record, header included.
struct ResendRequest {
  Epoch epoch;
  SessionId session;
  RingOffset offset;   // where its header is
  uint64_t bytes = 0;  // whole lines

  bool operator==(const ResendRequest&) const = default;
};

// The notice that the primary sends after the bytes. It takes no credit: at
// most one is in flight, and the backup has one more receive for it.
struct Resent {
  Epoch epoch;
  SessionId session;
  RingOffset offset;

  bool operator==(const Resent&) const = default;
};

inline constexpr size_t kResendRequestBytes = kAckBytes;
inline constexpr size_t kResentBytes = SummedBytes(4);

void EncodeResendRequest(const ResendRequest& request,
                         std::span<std::byte, kResendRequestBytes> into);
void EncodeResent(const Resent& resent,
                  std::span<std::byte, kResentBytes> into);
// Both return nothing if the bytes are no such message, or were changed on
// their way.
std::optional<ResendRequest> DecodeResendRequest(
    std::span<const std::byte> bytes);
std::optional<Resent> DecodeResent(std::span<const std::byte> bytes);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_SESSION_RESEND_H_
