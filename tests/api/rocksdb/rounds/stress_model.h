// SPDX-License-Identifier: Apache-2.0
// stress_model: what a thread of the stress test writes to RocksDB, and what
// must be there after each of its batches.
//
// Idea: the n-th batch of a thread is a function of seed, thread and n. So the
// expected state after any n is known without RocksDB, by doing the same to a
// few maps; all that must outlive a process is which n was tried and which was
// told to be durable. Each batch also writes its n; so after a crash the
// database itself says which n it claims to hold, and everything else of the
// thread must be exactly that.
//
// Thread safety: one thread per object.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_ROUNDS_STRESS_MODEL_H_
#define ALPHEUS_TESTS_API_ROCKSDB_ROUNDS_STRESS_MODEL_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace alpheus::testing {

inline constexpr size_t kStressFamilies = 3;

struct StressWrite {
  enum Kind { kPut, kMerge, kDelete, kDeleteRange };

  Kind kind = kPut;
  size_t family = 0;
  std::string key;
  std::string end_key;  // of kDeleteRange, not included
  std::string value;
};

// Batch `number`, from 1, of a thread. Its last write says its number.
std::vector<StressWrite> StressBatch(uint64_t seed, int thread,
                                     uint64_t number);

// All keys of a thread, and no others, begin with this.
std::string StressPrefix(int thread);
// The key in family 0 whose value is the number of the last batch.
std::string StressLastKey(int thread);

class StressModel {
 public:
  using Family = std::map<std::string, std::string>;

  StressModel(uint64_t seed, int thread) : seed_(seed), thread_(thread) {}

  // Requires: number >= number().
  void AdvanceTo(uint64_t number);

  uint64_t number() const { return number_; }
  const Family& family(size_t index) const { return families_[index]; }

 private:
  void Apply(const StressWrite& write);

  uint64_t seed_;
  int thread_;
  uint64_t number_ = 0;
  std::array<Family, kStressFamilies> families_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_ROUNDS_STRESS_MODEL_H_
