// SPDX-License-Identifier: Apache-2.0
// shadow_persistence: the persistence primitive over a shadow in memory, for
// peers whose writes can't go to persistent memory itself.
//
// Idea: an adapter without on-demand paging can't register a file on a DAX file
// system. So the node and its peers use a shadow of the whole region in memory,
// and a flush copies lines from there to the file. The shadow is like a cache
// that evicts nothing by itself: the file holds at most what real caches might
// have written back. Code that relies on Flush and Fence works as before. Bytes
// of peers are not persistent without them, so such a replica is of the weakest
// platform whatever its node declares (WithoutPersistentMemory of
// replication/persist/platform/platform.h).
//
// Invariants:
//   SHP1. A line of the file never goes back: of two threads that copy one
//         line, the one that read it later stores later. Caches promise this
//         for clwb. Here a thread that read an old line could store it over a
//         line that another one has fenced. So copying takes a lock for each
//         page, and the stores have left the processor's buffers before the
//         lock is released.
//   SHP2. After a Fence the file has all lines that its thread flushed or
//         stored past the cache before, as they were then or later.
// Persistence: 8-byte words are read and stored whole; between Flush and Fence
// a power cut leaves any of them old or new.
// Thread safety: concept (persistence.h).
// References: protocol P-B5 P-F3 to P-F5; docs/design/fabric.md.
#ifndef ALPHEUS_LOG_PMEM_SHADOW_PERSISTENCE_H_
#define ALPHEUS_LOG_PMEM_SHADOW_PERSISTENCE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/base/mutex.h"
#include "log/pmem/counters.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// Medium under the shadow; tests have models of it.
class ShadowedMedium {
 public:
  virtual ~ShadowedMedium() = default;

  virtual std::span<std::byte> bytes() = 0;
  // Stores past the cache; persistent after Fence of the same thread.
  virtual void StoreLine(size_t offset, const LineWords& words) = 0;
  // Orders this thread's stores before all stores of any thread that knows that
  // this call has returned.
  virtual void Order() = 0;
  virtual bool Fence() = 0;
  virtual absl::Status Error() const = 0;
};

// Mapped persistent memory.
class PmemShadowedMedium final : public ShadowedMedium {
 public:
  // The mapping must outlive it.
  PmemShadowedMedium(std::span<std::byte> mapping,
                     LibpmemPersistence::Options options)
      : mapping_(mapping), pmem_(std::move(options)) {}

  std::span<std::byte> bytes() override { return mapping_; }
  void StoreLine(size_t offset, const LineWords& words) override {
    pmem_.StoreLineNt(mapping_.data() + offset, words);
  }
  void Order() override { LibpmemPersistence::DrainStores(); }
  bool Fence() override { return pmem_.Fence(); }
  absl::Status Error() const override { return pmem_.Error(); }

 private:
  const std::span<std::byte> mapping_;
  LibpmemPersistence pmem_;
};

class ShadowPersistence {
 public:
  static constexpr bool kFenceIsCall = false;
  static constexpr uint64_t kWatermarkPeriod = 1;

  // `copy` is the shadow; it must outlive this object. Requires: it equals the
  // medium, and both begin on a line.
  ShadowPersistence(std::span<std::byte> copy,
                    std::unique_ptr<ShadowedMedium> medium);

  void Store8(uint64_t* word, uint64_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  void Copy(void* dst, const void* src, size_t bytes) {
    std::memcpy(dst, src, bytes);
    ThreadPersistenceCounters().copied_bytes += bytes;
  }
  // Requires: dst on a line; src may be unaligned.
  void CopyLinesNt(void* dst, const void* src, size_t lines);
  void StoreLineNt(void* dst, const LineWords& words) {
    CopyLinesNt(dst, &words, 1);
  }
  void Flush(const void* address, size_t bytes);
  void FlushHint(const void* address, size_t bytes) { Flush(address, bytes); }
  bool Fence() { return medium_->Fence(); }
  absl::Status Error() const { return medium_->Error(); }
  void YieldPoint(const char* /*name*/) {}

  // Returns the place on the medium for `address` in the shadow.
  std::byte* OnMedium(const void* address) const;

 private:
  // Number of locks. Threads share one only where they copy lines of the same
  // page, or of pages this many apart.
  static constexpr size_t kLocks = 64;

  size_t OffsetOf(const void* address) const;
  void CopyOut(size_t offset, size_t bytes);

  const std::span<std::byte> copy_;
  const std::unique_ptr<ShadowedMedium> medium_;
  std::array<Mutex, kLocks> locks_;
};

static_assert(Persistence<ShadowPersistence>);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_SHADOW_PERSISTENCE_H_
