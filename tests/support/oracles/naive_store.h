// SPDX-License-Identifier: Apache-2.0
// naive_store: the records of a store, read a second time: from
// docs/formats/store.md alone, with no regard to speed.
//
// Thread safety: pure.
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_STORE_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_STORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace alpheus::testing {

struct NaiveObject {
  std::string key;
  std::string value;
  int lap = 0;
  bool is_deleted = false;
  // By flag: the eight-byte words that follow for it.
  std::map<int, std::vector<uint64_t>> words;
  bool sum_is_right = true;
  size_t offset = 0;

  bool operator==(const NaiveObject&) const = default;
};

struct NaiveStoreRecord {
  int kind = 0;
  uint64_t time = 0;
  std::vector<NaiveObject> objects;
};

// Returns what a payload says, or nothing if no store of version 1 wrote it.
std::optional<NaiveStoreRecord> ReadStoreRecordNaively(
    const std::string& payload);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_STORE_H_
