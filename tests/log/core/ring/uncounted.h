// SPDX-License-Identifier: Apache-2.0
// uncounted: takes the place of the headers by which the log counts what it
// does. A program that is compiled with it in front of each source does all but
// that, so its instructions tell what counting costs.
//
// Thread safety: nothing is kept.
#ifndef ALPHEUS_TESTS_LOG_CORE_RING_UNCOUNTED_H_
#define ALPHEUS_TESTS_LOG_CORE_RING_UNCOUNTED_H_

#include <array>
#include <cstddef>
#include <cstdint>

// log/pmem/counters.h, log/base/counters.h, log/base/duration_histogram.h
#define ALPHEUS_LOG_PMEM_COUNTERS_H_
#define ALPHEUS_LOG_BASE_COUNTERS_H_
#define ALPHEUS_LOG_BASE_DURATION_HISTOGRAM_H_

namespace alpheus {

// A number that stays 0.
struct Uncounted {
  constexpr Uncounted& operator++() { return *this; }
  constexpr Uncounted& operator+=(uint64_t /*number*/) { return *this; }
  // NOLINTNEXTLINE(google-explicit-constructor): as the numbers in its place.
  constexpr operator uint64_t() const { return 0; }
};

struct PersistenceCounters {
  [[no_unique_address]] Uncounted fences;
  [[no_unique_address]] Uncounted flushed_lines;
  [[no_unique_address]] Uncounted copied_bytes;
  [[no_unique_address]] Uncounted msyncs;
};

inline PersistenceCounters& ThreadPersistenceCounters() {
  static constinit PersistenceCounters counters;
  return counters;
}

template <size_t Size>
class Counters {
 public:
  void Add(size_t /*index*/, uint64_t /*number*/ = 1) {}
  uint64_t Sum(size_t /*index*/) const { return 0; }
};

class DurationHistogram {
 public:
  struct Reading {
    std::array<uint64_t, 1> counts{};
    uint64_t sum_ns = 0;
  };
  void Count(int64_t /*duration_ns*/) {}
  Reading Read() const { return {}; }
};

}  // namespace alpheus

#endif  // ALPHEUS_TESTS_LOG_CORE_RING_UNCOUNTED_H_
