// SPDX-License-Identifier: Apache-2.0
// compare: holds the production readers against the naive ones and aborts the
// process, with both answers, where they differ.
//
// Thread safety: pure, but for the abort.
#ifndef ALPHEUS_TESTS_FUZZ_COMPARE_H_
#define ALPHEUS_TESTS_FUZZ_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/core/read/scan.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "log/format/watermark.h"
#include "tests/support/oracles/naive_format.h"
#include "tests/support/oracles/naive_scan.h"

namespace alpheus::testing {

// Says where they differ, and aborts.
[[noreturn]] void Difference(const std::string& what,
                             const std::string& production,
                             const std::string& naive);

// Values in the form that is compared: numbers as numbers, texts as texts.
inline std::string_view Plain(std::string_view text) { return text; }
template <class T>
  requires std::is_integral_v<T>
uint64_t Plain(T value) {
  return static_cast<uint64_t>(value);
}
template <class Tag>
uint64_t Plain(StrongId<Tag> id) {
  return id.value;
}
inline std::string Shown(std::string_view text) { return std::string(text); }
inline std::string Shown(uint64_t value) { return std::to_string(value); }

template <class A, class B>
void ExpectSame(const char* what, const A& production, const B& naive) {
  if (Plain(production) == Plain(naive)) return;
  Difference(what, Shown(Plain(production)), Shown(Plain(naive)));
}

// Checks a property of the code under test, without a second opinion.
inline void ExpectTrue(bool holds, const char* what) {
  if (!holds) Difference(what, "does not hold", "must");
}

naive::LogId NaiveId(Uuid id);

void ExpectSameOutcome(const char* what, const absl::Status& production,
                       naive::Outcome naive);
void ExpectSameSuperline(const Superline& production,
                         const naive::Superline& naive);
void ExpectSameTable(const EpochTable& production,
                     const naive::EpochTable& naive);
void ExpectSameWatermark(const std::optional<Watermark>& production,
                         const std::optional<naive::Watermark>& naive);

// Scans both ways and compares all that comes out, record by record, and what
// salvage finds behind each line. Returns the common outcome.
naive::ScanOutcome ExpectSameScan(const ScanInput& input,
                                  const naive::ScanTask& task);

// Reads the region both ways, for opening and for salvage, and scans it if it
// can be read.
void ExpectSameRegion(std::span<std::byte> region);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_FUZZ_COMPARE_H_
