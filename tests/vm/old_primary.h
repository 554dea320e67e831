// SPDX-License-Identifier: Apache-2.0
// old_primary: another process, which goes on writing whatever is said to it.
//
// Idea: on each of its lanes it connects, and streams writes with immediate
// into the region whose key it is given, as fast as the adapter takes them.
// From then on it does not listen to the connection manager, so that a peer
// that has closed is written to until the adapter gives it up; then it connects
// again. It runs until it is killed.
//
// Hello    8 bytes lane | 8 bytes writes of the last stream without success
// Welcome  8 bytes key | 8 bytes of the region
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_VM_OLD_PRIMARY_H_
#define ALPHEUS_TESTS_VM_OLD_PRIMARY_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

namespace alpheus::testing {

struct OldPrimaryPlan {
  std::string address;  // of the backup
  std::string host;     // to connect from
  std::string device;   // "rxe0"
  uint64_t lanes = 1;
  uint64_t write_bytes = 4096;  // a divisor of the region's bytes
};

// Two numbers as connections' private data.
std::string EncodePair(uint64_t first, uint64_t second);
std::pair<uint64_t, uint64_t> DecodePair(const std::string& data);

// This program once more, as that process.
class OldPrimary {
 public:
  explicit OldPrimary(const OldPrimaryPlan& plan);
  // Kills it.
  ~OldPrimary();
  OldPrimary(const OldPrimary&) = delete;
  OldPrimary& operator=(const OldPrimary&) = delete;

  bool is_running() const;
  void Kill();  // -9

 private:
  pid_t process_ = -1;
};

// For main: runs as that process if the arguments say so; else false.
bool RanAsOldPrimary(int argc, char** argv, int* status);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_VM_OLD_PRIMARY_H_
