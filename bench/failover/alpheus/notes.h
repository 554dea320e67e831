// SPDX-License-Identifier: Apache-2.0
// notes: values that a process of the log's cluster tells the benchmark, in a
// file that both have mapped.
//
// Idea: a process that is stopped or cut off has told all that it knew by then,
// and telling takes no system call in the middle of a fail-over. All times are
// of one machine's steady clock.
//
// Invariants:
//   NOT1. Each value has one writer. `first_ack_ns`, `loaded_ns`, `stands_ns`
//         and `cut_ns` are written after their event, and release all that was
//         written before them.
// Thread safety: all members concurrently.
#ifndef ALPHEUS_BENCH_FAILOVER_ALPHEUS_NOTES_H_
#define ALPHEUS_BENCH_FAILOVER_ALPHEUS_NOTES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace alpheus::bench::failover {

inline constexpr uint32_t kPortsMax = 64;

// All 0 at first.
struct Notes {
  // Notes of a program that stands: the moments of its first opening
  // (OpeningMoments); when its first record was durable; how many openings
  // failed, and how often it suspected the primary wrongly; when it told that
  // it stands; when the log had its size and three replicas.
  std::atomic<int64_t> began_ns;
  std::atomic<int64_t> promised_ns;
  std::atomic<int64_t> chosen_ns;
  std::atomic<int64_t> installed_ns;
  std::atomic<int64_t> opened_ns;
  std::atomic<int64_t> first_ack_ns;
  std::atomic<uint64_t> failed_openings;
  std::atomic<uint64_t> wrong_suspicions;
  std::atomic<int64_t> stands_ns;
  std::atomic<int64_t> loaded_ns;

  // Notes of a cut (cut.h). A program writes the ports of its own sockets; the
  // benchmark writes the ports that a node is to drop.
  std::atomic<uint32_t> port_count;
  std::array<std::atomic<uint16_t>, kPortsMax> ports;
  std::atomic<int64_t> cut_ns;  // when it was done
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// A mapping of such a file.
class NotesFile {
 public:
  // Makes the file, or maps the one that is there. Errors: Unavailable.
  static absl::StatusOr<NotesFile> Open(const std::string& path);
  NotesFile(NotesFile&& other) noexcept
      : notes_(std::exchange(other.notes_, nullptr)) {}
  NotesFile& operator=(NotesFile&& other) = delete;
  ~NotesFile();

  Notes& operator*() const { return *notes_; }
  Notes* operator->() const { return notes_; }

 private:
  explicit NotesFile(Notes* notes) : notes_(notes) {}

  Notes* notes_;
};

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_ALPHEUS_NOTES_H_
