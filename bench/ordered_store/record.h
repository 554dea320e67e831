// SPDX-License-Identifier: Apache-2.0
// record: a key's value, and the number of its changes.
//
// Thread safety: `key` is fixed; the rest is guarded by the record's lock.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_RECORD_H_
#define ALPHEUS_BENCH_ORDERED_STORE_RECORD_H_

#include <immintrin.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace alpheus::bench::ordered_store {

inline constexpr int kValueWords = 8;
using Value = std::array<uint64_t, kValueWords>;

class Record {
 public:
  explicit Record(uint64_t key) : key(key) {}

  // Locks the record while a change is made and gets its place in the log: a
  // key's changes are in the log in the order in which they were made. Spins,
  // and yields the core after spinning in vain: with more threads than cores
  // the owner may not be running.
  void Lock() {
    for (int round = 0; is_locked_.exchange(true, std::memory_order_acquire);
         ++round) {
      if (round < kSpinRounds) {
        _mm_pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  void Unlock() { is_locked_.store(false, std::memory_order_release); }

  const uint64_t key;
  uint64_t changes = 0;
  Value value = {};

 private:
  static constexpr int kSpinRounds = 100;

  std::atomic<bool> is_locked_{false};
};

class RecordLock {
 public:
  explicit RecordLock(Record& record) : record_(record) { record_.Lock(); }
  ~RecordLock() { record_.Unlock(); }
  RecordLock(const RecordLock&) = delete;
  RecordLock& operator=(const RecordLock&) = delete;

 private:
  Record& record_;
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_RECORD_H_
