// SPDX-License-Identifier: Apache-2.0
// feed: an endless stream of numbered records made of the lines of a file.
//
// Record n is n, a tab, and line n mod (number of lines): every record differs
// from every other, and its number identifies it.
//
// Thread safety: immutable.
#ifndef ALPHEUS_TOOLS_NEMESIS_WRITERS_FEED_H_
#define ALPHEUS_TOOLS_NEMESIS_WRITERS_FEED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace alpheus::demo {

class Feed {
 public:
  // Size of pieces into which longer lines are split, so that a record of any
  // file fits any region.
  static constexpr size_t kLineBytesMax = 4000;

  // Loads a file. Errors: NotFound, FailedPrecondition (unreadable, or empty).
  static absl::StatusOr<Feed> Load(const std::string& path);
  // Returns a feed of the lines of a text. Requires: not empty.
  static Feed FromText(std::string text);

  std::string Record(uint64_t number) const;
  // Returns the number that a record claims; its text may differ nevertheless.
  static std::optional<uint64_t> NumberOf(std::string_view record);

  size_t line_count() const { return lines_.size(); }
  // Returns the mean space of a record in the ring, in bytes.
  uint64_t mean_record_bytes() const { return mean_record_bytes_; }

 private:
  struct Piece {
    size_t begin;
    size_t bytes;
  };

  Feed() = default;
  void AddLine(size_t begin, size_t bytes);

  std::string text_;
  std::vector<Piece> lines_;  // in text_
  uint64_t mean_record_bytes_ = 0;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_WRITERS_FEED_H_
