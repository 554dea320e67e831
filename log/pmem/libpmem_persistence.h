// SPDX-License-Identifier: Apache-2.0
// libpmem_persistence: the persistence primitive on real persistent memory.
//
// Idea: libpmem flushes (clwb, clflushopt or clflush, chosen once per process).
// Stores and the fence are inlined here, because they are the append path. With
// eADR (libpmem reports auto-flush) a flush does nothing and only the fence
// remains.
//
// Thread safety: concept (persistence.h).
// References: libpmem(7) 1.12; Arcadia §3.
#ifndef ALPHEUS_LOG_PMEM_LIBPMEM_PERSISTENCE_H_
#define ALPHEUS_LOG_PMEM_LIBPMEM_PERSISTENCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/pmem/counters.h"
#include "log/pmem/persistence.h"
#include "log/pmem/region_alarm.h"

namespace alpheus {

class LibpmemPersistence {
 public:
  struct Options {
    // The caches are inside the persistence domain; see DetectAutoFlush().
    bool auto_flush = false;
    // Spinning time added to every fence, to emulate slower media on DRAM; the
    // papers use 150 and 200. Range 0 (off) to 1,000,000.
    uint32_t emulated_latency_ns = 0;
    // Alarm that makes fences fail once it is raised; nullptr: none.
    std::shared_ptr<const RegionAlarm> alarm = nullptr;
  };

  static constexpr bool kFenceIsCall = false;
  static constexpr uint64_t kWatermarkPeriod = 1;

  // Returns what libpmem reports for this machine: true with eADR.
  static bool DetectAutoFlush();

  explicit LibpmemPersistence(Options options) : options_(std::move(options)) {}

  void Store8(uint64_t* word, uint64_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }

  void Copy(void* dst, const void* src, size_t bytes) {
    // Counted first: else the number is kept over the call.
    ThreadPersistenceCounters().copied_bytes += bytes;
    std::memcpy(dst, src, bytes);
  }

  // Requires: dst on a line; src may be unaligned.
  void CopyLinesNt(void* dst, const void* src, size_t lines) {
#if defined(__SSE2__)
    auto* to = static_cast<__m128i*>(dst);
    const auto* from = static_cast<const __m128i*>(src);
    for (size_t i = 0; i < lines; ++i, to += 4, from += 4) {
      StoreQuarters(to, _mm_loadu_si128(from), _mm_loadu_si128(from + 1),
                    _mm_loadu_si128(from + 2), _mm_loadu_si128(from + 3));
    }
#else
    std::memcpy(dst, src, lines * kLineBytes);
    FlushLines(dst, lines * kLineBytes);
#endif
  }

  void StoreLineNt(void* dst, const LineWords& words) {
#if defined(__SSE2__)
    const auto quarter = [&words](size_t i) {
      return _mm_set_epi64x(static_cast<int64_t>(words.word[2 * i + 1]),
                            static_cast<int64_t>(words.word[2 * i]));
    };
    StoreQuarters(static_cast<__m128i*>(dst), quarter(0), quarter(1),
                  quarter(2), quarter(3));
#else
    CopyLinesNt(dst, &words, 1);
#endif
  }

  void Flush(const void* address, size_t bytes) {
    if (options_.auto_flush || bytes == 0) return;
    const auto first =
        RoundDown(reinterpret_cast<uintptr_t>(address), kLineBytes);
    const auto end = reinterpret_cast<uintptr_t>(address) + bytes;
    ThreadPersistenceCounters().flushed_lines +=
        (RoundUp(end, kLineBytes) - first) / kLineBytes;
    FlushLines(address, bytes);
  }

  void FlushHint(const void* address, size_t bytes) { Flush(address, bytes); }

  bool Fence() {
    ++ThreadPersistenceCounters().fences;
    DrainStores();
    if (options_.emulated_latency_ns != 0) SpinEmulatedLatency();
    return options_.alarm == nullptr || !options_.alarm->is_raised();
  }

  // Drains stores as a fence does, uncounted and without the emulated latency.
  static void DrainStores() {
#if defined(__SSE2__)
    // Not pmem_drain(): it is empty where libpmem flushes with clflush, and
    // then it would not drain the non-temporal stores above.
    _mm_sfence();
#else
    Drain();
#endif
  }

  absl::Status Error() const {
    return options_.alarm == nullptr ? absl::OkStatus()
                                     : options_.alarm->MediumError();
  }
  void YieldPoint(const char* /*name*/) {}

 private:
#if defined(__SSE2__)
  // Stores the quarters of a line one right after the other. With a pause
  // between them, the fence behind took three times as long on some processors
  // (docs/design/architecture.md#an-append-on-one-machine).
  static void StoreQuarters(__m128i* to, __m128i a, __m128i b, __m128i c,
                            __m128i d) {
    // The compiler has all four in registers before it stores the first.
    asm("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d));
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
#endif

  static void FlushLines(const void* address, size_t bytes);
  static void Drain();
  void SpinEmulatedLatency() const;

  Options options_;
};

static_assert(Persistence<LibpmemPersistence>);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_LIBPMEM_PERSISTENCE_H_
