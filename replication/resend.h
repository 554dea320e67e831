// SPDX-License-Identifier: Apache-2.0
// resend: how a record comes right again that was damaged on its way to a
// backup.
//
// Idea: the backup has summed it (BS6 of backup_session.h), acknowledges
// nothing from it on, and asks for its bytes. The primary writes them again,
// from its own ring to the same place, and says so behind them: what arrives in
// order is there then. So a damage costs a round trip, and no session; if it
// came to all backups at once, no epoch.
//
// Thread safety: values and pure functions.
// References: docs/design/replication.md, "Payloads, from end to end".
#ifndef ALPHEUS_REPLICATION_RESEND_H_
#define ALPHEUS_REPLICATION_RESEND_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "replication/ack.h"
#include "replication/summed_words.h"

namespace alpheus {

// From the backup, in place of an ack: all of one record, header included.
struct ResendRequest {
  Epoch epoch;
  SessionId session;
  RingOffset offset;   // of its header
  uint64_t bytes = 0;  // whole lines

  bool operator==(const ResendRequest&) const = default;
};

// From the primary, behind the bytes. It takes no credit: there is one of them
// under way at most, for which the backup has a receive more.
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
// Nothing if it is none, or was changed on its way.
std::optional<ResendRequest> DecodeResendRequest(
    std::span<const std::byte> bytes);
std::optional<Resent> DecodeResent(std::span<const std::byte> bytes);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_RESEND_H_
