// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/store.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"

namespace alpheus::bench::ordered_store {
namespace {

static_assert(sizeof(Change) == (2 + kValueWords) * sizeof(uint64_t),
              "no padding: it is written as it is");

// Each word from all of the value before: the whole of it is read.
Value Modified(const Value& value, uint64_t changes) {
  uint64_t sum = changes;
  for (const uint64_t word : value) sum += word;
  Value next = value;
  for (uint64_t& word : next) word += sum;
  return next;
}

std::vector<Change> Contents(const OrderedMap& map) {
  std::vector<Change> all;
  map.ForEach([&](const Record& record) {
    all.push_back({record.key, record.changes, record.value});
  });
  return all;
}

bool IsSame(const Change& a, const Change& b) {
  return a.key == b.key && a.changes == b.changes && a.value == b.value;
}

}  // namespace

void Store::Load(uint64_t count) {
  // An odd factor of a power of two's residues meets each of them once.
  uint64_t size = 1;
  while (size < count) size *= 2;
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t key = i * 0x9e3779b97f4a7c15u % size;
    if (key >= count) continue;
    Record* const record = map_.FindOrInsert(key);
    for (size_t word = 0; word < record->value.size(); ++word) {
      record->value[word] = Mix(key, word);
    }
  }
}

absl::StatusOr<uint64_t> Store::Update(int worker, uint64_t key,
                                       CommitLog& log) {
  Record* const record = map_.FindOrInsert(key);
  const RecordLock lock(*record);
  const Change change{key, record->changes + 1,
                      Modified(record->value, record->changes)};
  absl::StatusOr<uint64_t> place =
      log.Write(worker, std::as_bytes(std::span(&change, 1)));
  if (!place.ok()) return place;
  record->changes = change.changes;
  record->value = change.value;
  return place;
}

void Store::UpdateUnlogged(uint64_t key) {
  Record* const record = map_.FindOrInsert(key);
  const RecordLock lock(*record);
  record->value = Modified(record->value, record->changes);
  ++record->changes;
}

bool Store::Read(uint64_t key, Change* found) {
  Record* const record = map_.Find(key);
  if (record == nullptr) return false;
  const RecordLock lock(*record);
  *found = {key, record->changes, record->value};
  return true;
}

absl::Status Store::Replay(std::span<const std::byte> change) {
  Change next{};
  if (change.size() != sizeof(next)) {
    return absl::DataLossError(
        absl::StrCat("a change has ", change.size(), " bytes"));
  }
  std::memcpy(&next, change.data(), sizeof(next));
  Record* const record = map_.FindOrInsert(next.key);
  if (next.changes != record->changes + 1) {
    return absl::DataLossError(absl::StrCat("key ", next.key, ": change ",
                                            next.changes, " follows change ",
                                            record->changes));
  }
  record->changes = next.changes;
  record->value = next.value;
  return absl::OkStatus();
}

bool AreEqual(const Store& a, const Store& b) {
  return std::ranges::equal(Contents(a.map()), Contents(b.map()), IsSame);
}

}  // namespace alpheus::bench::ordered_store
