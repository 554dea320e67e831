// SPDX-License-Identifier: Apache-2.0
#include "tests/api/rocksdb/rounds/stress_model.h"

#include "log/base/random.h"

namespace alpheus::testing {
namespace {

constexpr uint64_t kKeys = 60;  // of a thread in each family
constexpr uint64_t kWritesMax = 5;

std::string KeyOf(int thread, uint64_t index) {
  return StressPrefix(thread) + "k" + std::to_string(100 + index);
}

// Each value has a length of its own, so that records end everywhere.
std::string DrawValue(RandomSource& random) {
  std::string value = std::to_string(random.Next());
  value.append(random.Below(600), static_cast<char>('a' + random.Below(26)));
  return value;
}

}  // namespace

std::string StressPrefix(int thread) {
  return "t" + std::to_string(thread) + ":";
}

std::string StressLastKey(int thread) { return StressPrefix(thread) + "last"; }

std::vector<StressWrite> StressBatch(uint64_t seed, int thread,
                                     uint64_t number) {
  // The generator's own mixing tells near seeds apart.
  Random of_thread(seed + static_cast<uint64_t>(thread));
  Random random(of_thread.Next() ^ number);
  std::vector<StressWrite> writes(1 + random.Below(kWritesMax));
  for (StressWrite& write : writes) {
    const uint64_t index = random.Below(kKeys);
    write.family = random.Below(kStressFamilies);
    write.key = KeyOf(thread, index);
    const uint64_t kind = random.Below(100);
    if (kind < 55) {
      write.value = DrawValue(random);
    } else if (kind < 75) {
      write.kind = StressWrite::kMerge;
      write.value = std::to_string(number);
    } else if (kind < 97) {
      write.kind = StressWrite::kDelete;
    } else {
      write.kind = StressWrite::kDeleteRange;
      write.end_key = KeyOf(thread, index + 1 + random.Below(8));
    }
  }
  writes.push_back({.key = StressLastKey(thread),
                    .end_key = {},
                    .value = std::to_string(number)});
  return writes;
}

void StressModel::AdvanceTo(uint64_t number) {
  while (number_ < number) {
    ++number_;
    for (const StressWrite& write : StressBatch(seed_, thread_, number_)) {
      Apply(write);
    }
  }
}

void StressModel::Apply(const StressWrite& write) {
  Family& family = families_[write.family];
  switch (write.kind) {
    case StressWrite::kPut:
      family[write.key] = write.value;
      return;
    case StressWrite::kMerge: {
      // As RocksDB's StringAppendOperator does it.
      const auto [found, is_new] = family.try_emplace(write.key, write.value);
      if (!is_new) found->second += "," + write.value;
      return;
    }
    case StressWrite::kDelete:
      family.erase(write.key);
      return;
    case StressWrite::kDeleteRange:
      family.erase(family.lower_bound(write.key),
                   family.lower_bound(write.end_key));
      return;
  }
}

}  // namespace alpheus::testing
