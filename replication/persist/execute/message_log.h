// SPDX-License-Identifier: Apache-2.0
// message_log: receive buffers in persistent memory, which are the log of their
// messages until a program has applied them.
//
// Idea: a line names the session that fills the buffers, and how many of its
// updates are applied. The buffers follow it. A message is live if it is of
// that session, whole, and next in number: recovery applies it. A buffer is
// given back to the adapter only when the line counts its message.
//
//   area    session, applied, 0 ...   one line
//           buffer 0, buffer 1, ...   slot_bytes each
//
// Invariants:
//   ML1. The line counts an update only when a and b are persistent in their
//        places, a before b was stored.
//   ML2. A session is named there only when nothing of an earlier one is live.
//   ML3. Applied is a prefix of the session's updates: recovery stops at the
//        first number without a whole message.
// Crash states: Begin may be cut before the old session is cleared (all its
// messages are applied), before the new one is named (no session: none is
// live), or after that. Apply may be cut with a in part, with a, with a and b
// in part, or with both and not counted. It is applied again, which leaves the
// same bytes.
// Thread safety: one thread.
// References: remote persistence taxonomy §3.2; protocol P-B6 P-R5.
#ifndef ALPHEUS_REPLICATION_PERSIST_EXECUTE_MESSAGE_LOG_H_
#define ALPHEUS_REPLICATION_PERSIST_EXECUTE_MESSAGE_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/pmem/persistence.h"
#include "replication/persist/execute/update_message.h"

namespace alpheus::replication {

// Returns true if the part lies in a region of `region_bytes`.
constexpr bool IsInRegion(const UpdatePlace& place, uint64_t region_bytes) {
  return place.offset <= region_bytes &&
         place.bytes <= region_bytes - place.offset;
}

// Stores one part in its place, and persists it if asked to. An aligned word is
// stored atomically. Errors: the medium's.
template <Persistence P>
absl::Status CopyPart(P& pmem, std::span<std::byte> region,
                      const UpdatePlace& place,
                      std::span<const std::byte> bytes, bool persists) {
  if (bytes.empty()) return absl::OkStatus();
  std::byte* const target = region.data() + place.offset;
  if (bytes.size() == sizeof(uint64_t) &&
      reinterpret_cast<uintptr_t>(target) % sizeof(uint64_t) == 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    pmem.Store8(reinterpret_cast<uint64_t*>(target), word);
  } else {
    pmem.Copy(target, bytes.data(), bytes.size());
  }
  if (!persists) return absl::OkStatus();
  return Persist(pmem, target, bytes.size()) ? absl::OkStatus() : pmem.Error();
}

// Runs copy(a,b) or copy+flush(a,b): a before b. Errors: DataLoss (a place
// outside the region), the medium's.
template <Persistence P>
absl::Status CopyUpdate(P& pmem, std::span<std::byte> region,
                        const UpdateMessage& message, bool persists) {
  if (!IsInRegion(message.a, region.size()) ||
      !IsInRegion(message.b, region.size())) {
    return absl::DataLossError(
        absl::StrCat("update ", message.sequence, ": a at ", message.a.offset,
                     ", ", message.a.bytes, " bytes, b at ", message.b.offset,
                     ", ", message.b.bytes, " bytes, of a region of ",
                     region.size(), "; nothing was copied. Close the session"));
  }
  ALPHEUS_RETURN_IF_ERROR(
      CopyPart(pmem, region, message.a, message.bytes_of_a, persists));
  // Where caches are persistent, only the order of stores counts.
  std::atomic_thread_fence(std::memory_order_release);
  return CopyPart(pmem, region, message.b, message.bytes_of_b, persists);
}

template <Persistence P>
class MessageLog {
 public:
  // `area` is the line, and buffers of slot_bytes, a multiple of a line.
  // `region` holds the places of updates. `pmem` persists both.
  MessageLog(P& pmem, std::span<std::byte> area, size_t slot_bytes,
             std::span<std::byte> region)
      : pmem_(pmem), area_(area), slot_bytes_(slot_bytes), region_(region) {}

  static constexpr size_t AreaBytes(size_t slots, size_t slot_bytes) {
    return kLineBytes + slots * slot_bytes;
  }
  size_t slots() const { return (area_.size() - kLineBytes) / slot_bytes_; }
  std::span<std::byte> At(size_t slot) const {
    return area_.subspan(kLineBytes + slot * slot_bytes_, slot_bytes_);
  }
  uint64_t applied() const { return Load(kAppliedWord); }

  // Makes the messages of `session`, not 0, live. Requires: ApplyAll was called
  // since the memory was opened. Errors: the medium's.
  absl::Status Begin(SessionId session) {
    ALPHEUS_RETURN_IF_ERROR(Store(kSessionWord, 0));
    ALPHEUS_RETURN_IF_ERROR(Store(kAppliedWord, 0));
    return Store(kSessionWord, session.value);
  }

  // Applies the next message. Errors: as CopyUpdate.
  absl::Status Apply(const UpdateMessage& message) {
    ALPHEUS_RETURN_IF_ERROR(
        CopyUpdate(pmem_, region_, message, /*persists=*/true));
    return Store(kAppliedWord, message.sequence);
  }

  // Applies all live messages, for recovery, and returns their number. May be
  // called again, also after a cut, without effect. Errors: as CopyUpdate.
  absl::StatusOr<uint64_t> ApplyAll() {
    uint64_t count = 0;
    if (Load(kSessionWord) == 0) return count;
    while (const auto next = Find(applied() + 1)) {
      ALPHEUS_RETURN_IF_ERROR(Apply(*next));
      ++count;
    }
    return count;
  }

 private:
  static constexpr size_t kSessionWord = 0;
  static constexpr size_t kAppliedWord = 1;

  uint64_t* Word(size_t word) const {
    return reinterpret_cast<uint64_t*>(area_.data()) + word;
  }
  uint64_t Load(size_t word) const {
    uint64_t value = 0;
    std::memcpy(&value, Word(word), sizeof value);
    return value;
  }
  absl::Status Store(size_t word, uint64_t value) {
    pmem_.Store8(Word(word), value);
    return Persist(pmem_, Word(word), sizeof value) ? absl::OkStatus()
                                                    : pmem_.Error();
  }
  std::optional<UpdateMessage> Find(uint64_t sequence) const {
    const SessionId session(Load(kSessionWord));
    for (size_t slot = 0; slot < slots(); ++slot) {
      const auto message = DecodeUpdateMessage(At(slot));
      if (!message || message->is_address()) continue;
      const bool is_ours = message->session == session;
      if (is_ours && message->sequence == sequence) return message;
    }
    return std::nullopt;
  }

  P& pmem_;
  const std::span<std::byte> area_;
  const size_t slot_bytes_;
  const std::span<std::byte> region_;
};

// Applies the messages in receive buffers in persistent memory, before recovery
// reads the region: MessageLog::ApplyAll.
template <Persistence P>
absl::StatusOr<uint64_t> ApplyMessages(P& pmem, std::span<std::byte> area,
                                       size_t slot_bytes,
                                       std::span<std::byte> region) {
  return MessageLog<P>(pmem, area, slot_bytes, region).ApplyAll();
}

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_MESSAGE_LOG_H_
