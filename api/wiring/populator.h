// SPDX-License-Identifier: Apache-2.0
// populator: maps the pages of a region before they are read.
//
// Idea: an opening reads all records once. A fault takes a microsecond, in
// which the kernel maps the pages around as well, 64 KiB of them; asking for
// all pages at once takes longer, as it counts each as used, under a lock that
// the reader needs, too. So a thread asks for one page of each 64 KiB, from the
// first on, while the opening already reads. Whoever overtakes it faults, and
// nothing depends on it: where a page can't be had the faults come.
//
// Thread safety: one thread.
// References: madvise(2) MADV_POPULATE_READ.
#ifndef ALPHEUS_API_WIRING_POPULATOR_H_
#define ALPHEUS_API_WIRING_POPULATOR_H_

#include <atomic>
#include <cstddef>
#include <span>

#include "api/wiring/background_thread.h"

namespace alpheus {

class Populator {
 public:
  // Starts at once; with few pages, or on one core, it has finished when the
  // constructor returns. The pages must stay mapped as long as it lives.
  Populator(std::span<std::byte> pages, bool is_in_page_cache);
  ~Populator();
  Populator(const Populator&) = delete;
  Populator& operator=(const Populator&) = delete;

 private:
  void Run();

  const std::span<std::byte> pages_;
  const size_t step_bytes_;
  const size_t asked_bytes_;  // at the beginning of each step
  std::atomic<bool> stop_{false};
  BackgroundThread thread_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_POPULATOR_H_
