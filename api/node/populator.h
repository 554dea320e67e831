// SPDX-License-Identifier: Apache-2.0
// populator: maps the pages of a region before they are read.
//
// Idea: an opening reads all records once. A fault per few pages costs a
// quarter more than asking for all of them, and asking for all of them takes as
// long as reading them (some 65 us per MiB); so a thread asks, from the first
// page on, while the opening already reads. Whoever overtakes it faults, and
// nothing depends on it: where pages can't be populated the faults come.
//
// Thread safety: one thread.
// References: madvise(2) MADV_POPULATE_READ.
#ifndef ALPHEUS_API_NODE_POPULATOR_H_
#define ALPHEUS_API_NODE_POPULATOR_H_

#include <atomic>
#include <cstddef>
#include <span>

#include "api/node/background_thread.h"

namespace alpheus {

class Populator {
 public:
  // Starts at once; with few pages, or on one core, it has finished when the
  // constructor returns. The pages must stay mapped as long as it lives.
  explicit Populator(std::span<std::byte> pages);
  ~Populator();
  Populator(const Populator&) = delete;
  Populator& operator=(const Populator&) = delete;

 private:
  void Run();

  const std::span<std::byte> pages_;
  std::atomic<bool> stop_{false};
  BackgroundThread thread_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_POPULATOR_H_
