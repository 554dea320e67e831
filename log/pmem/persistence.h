// SPDX-License-Identifier: Apache-2.0
// persistence: the one primitive through which library code writes persistent
// memory, as a compile-time policy.
//
// Idea: a backend is a class with the members of the concept below. The log's
// templates are instantiated once per backend. So the release build's append
// path makes no call through a pointer per store, and the crash tests run the
// same source on modelled memory.
//
//   LibpmemPersistence  fsdax file, device-DAX, anonymous memory: clwb / sfence
//   ShadowPersistence   a shadow in memory, flushed by lines into such a file
//   MsyncPersistence    plain file: page cache + msync
//   ModelPersistence    crash model with two images (crash_model.h)
//
// Meaning of the members (Arcadia §3, "Persistence Primitive"):
//   Store8(p, v)        one 8-byte atomic release store; the only store that a
//                       concurrent reader or a crash never sees half (P-F5).
//   Copy(d, s, n)       cached stores; visible at once, persistent after
//                       Flush + Fence. Any thread may do the flush.
//   CopyLinesNt(d,s,n)  n whole lines past the cache; persistent after a Fence
//                       of the *same* thread, and of no other (P-F3).
//   StoreLineNt(d, w)   CopyLinesNt of one line that is in registers.
//   Flush(p, n)         starts write-back of the lines that hold [p, p+n).
//   FlushHint(p, n)     Flush for bytes that may be lost: no Fence follows.
//   Fence()             OK = every Flush and CopyLinesNt of this thread before
//                       it is inside the persistence domain. On failure what
//                       is persistent is unknown; the log has failed.
//   Error()             why a Fence failed.
//   YieldPoint(name)    nothing in release; a scheduling point in the model.
//   kFenceIsCall        a Fence is a system call that waits for a disk; one
//                       fence for many records then beats all else.
//   kWatermarkPeriod    write the watermark with each n-th batch (1 where a
//                       line costs nanoseconds, more where it is a msync).
//
// Persistence: of the stores that no Fence covers, a power cut keeps any subset
// of 8-byte words, in any order.
// Thread safety: all members may be called concurrently; each Fence covers its
// own thread only.
// May block: Fence, where kFenceIsCall; all stores, for page faults.
// References: docs/formats/log.md; protocol P-B5 P-F3 to P-F5.
#ifndef ALPHEUS_LOG_PMEM_PERSISTENCE_H_
#define ALPHEUS_LOG_PMEM_PERSISTENCE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/bytes.h"

namespace alpheus {

template <class P>
concept Persistence =
    requires(P p, uint64_t* word, void* dst, const void* src, size_t n) {
      { p.Store8(word, uint64_t{}) } -> std::same_as<void>;
      { p.Copy(dst, src, n) } -> std::same_as<void>;
      { p.CopyLinesNt(dst, src, n) } -> std::same_as<void>;
      { p.StoreLineNt(dst, LineWords{}) } -> std::same_as<void>;
      { p.Flush(src, n) } -> std::same_as<void>;
      { p.FlushHint(src, n) } -> std::same_as<void>;
      { p.Fence() } -> std::same_as<bool>;
      { p.Error() } -> std::same_as<absl::Status>;
      { p.YieldPoint("name") } -> std::same_as<void>;
      { P::kFenceIsCall } -> std::convertible_to<bool>;
      { P::kWatermarkPeriod } -> std::convertible_to<uint64_t>;
    };

// Flushes and fences one range. Returns false if it is unknown what is
// persistent.
template <Persistence P>
[[nodiscard]] bool Persist(P& pmem, const void* address, size_t bytes) {
  pmem.Flush(address, bytes);
  return pmem.Fence();
}

// Returns the place on the medium for `address`; another place if it is in a
// shadow.
template <Persistence P>
std::byte* OnMedium(P& pmem, std::byte* address) {
  if constexpr (requires { pmem.OnMedium(address); }) {
    return pmem.OnMedium(address);
  } else {
    return address;
  }
}

// Persists a range again if the medium differs from it. Returns true if it did.
// Requires: no thread writes there, and the range was persisted before.
template <Persistence P>
absl::StatusOr<bool> RepairOnMedium(P& pmem, std::byte* address, size_t bytes) {
  if constexpr (requires { pmem.OnMedium(address); }) {
    if (std::memcmp(pmem.OnMedium(address), address, bytes) == 0) return false;
    if (!Persist(pmem, address, bytes)) return pmem.Error();
    return true;
  }
  return false;
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_PERSISTENCE_H_
