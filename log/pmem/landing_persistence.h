// SPDX-License-Identifier: Apache-2.0
// landing_persistence: the persistence primitive where peers' writes can't go
// to persistent memory itself: they land in a copy of it in memory.
//
// Idea: an adapter without on-demand paging can't register a file on a DAX file
// system. So the node and its peers see a copy of the whole region in memory,
// and a flush copies lines from there to the file: the copy is a cache that
// evicts nothing by itself, and the file holds at most what real caches might
// have written back. All that relies on Flush and Fence holds as before; what
// relies on bytes of peers being persistent without them does not, so that such
// a replica is of the weakest platform whatever its node declares
// (WithoutPersistentMemory of replication/persist/platform/platform.h).
//
// Invariants:
//   LP1. A line of the file never goes back: of two threads that copy one line,
//        the one that read it later stores later. Caches promise this for clwb;
//        here a thread that read an old line could store it over what another
//        one has fenced. So copying is under a lock for each page, and what was
//        stored has left the processor's buffers before it is released.
//   LP2. After a Fence the file holds, of all lines that its thread flushed or
//        stored past the cache before, what they held then or later.
// Persistence: words of 8 bytes are read and stored whole; between Flush and
// Fence a power cut leaves any of them old or new.
// Thread safety: concept (persistence.h).
// References: protocol P-B5 P-F3 to P-F5; docs/design/fabric.md.
#ifndef ALPHEUS_LOG_PMEM_LANDING_PERSISTENCE_H_
#define ALPHEUS_LOG_PMEM_LANDING_PERSISTENCE_H_

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

// What the copy is of; tests have models of it.
class LandingMedium {
 public:
  virtual ~LandingMedium() = default;

  virtual std::span<std::byte> bytes() = 0;
  // Past the cache. Persistent after Fence of the same thread.
  virtual void StoreLine(size_t offset, const LineWords& words) = 0;
  // What this thread has stored is not overtaken by what any thread stores
  // after it knows that this has returned.
  virtual void Order() = 0;
  virtual bool Fence() = 0;
  virtual absl::Status Error() const = 0;
};

// Mapped persistent memory.
class PmemLandingMedium final : public LandingMedium {
 public:
  // The mapping must outlive it.
  PmemLandingMedium(std::span<std::byte> mapping,
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

class LandingPersistence {
 public:
  static constexpr bool kFenceIsCall = false;
  static constexpr uint64_t kWatermarkPeriod = 1;

  // `copy` must outlive it. Requires: its bytes are those of the medium, it
  // begins on a line, and so does the medium.
  LandingPersistence(std::span<std::byte> copy,
                     std::unique_ptr<LandingMedium> medium);

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

  // Where the medium has what is at `address` of the copy.
  std::byte* OnMedium(const void* address) const;

 private:
  // Threads meet at a lock only where they copy lines of the same page, or of
  // pages that are so far apart.
  static constexpr size_t kLocks = 64;

  size_t OffsetOf(const void* address) const;
  void CopyOut(size_t offset, size_t bytes);

  const std::span<std::byte> copy_;
  const std::unique_ptr<LandingMedium> medium_;
  std::array<Mutex, kLocks> locks_;
};

static_assert(Persistence<LandingPersistence>);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_LANDING_PERSISTENCE_H_
