// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/writers/feed.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/format/record.h"

namespace alpheus::demo {
namespace {

// Digits of the number and the tab.
constexpr size_t kPrefixBytes = 8;

}  // namespace

absl::StatusOr<Feed> Feed::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, ": can't be opened; name a file that can"));
  }
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  if (text.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is empty or unreadable; name a file with lines"));
  }
  return FromText(std::move(text));
}

Feed Feed::FromText(std::string text) {
  Feed feed;
  feed.text_ = std::move(text);
  size_t begin = 0;
  while (begin < feed.text_.size()) {
    const size_t end =
        std::min(feed.text_.find('\n', begin), feed.text_.size());
    feed.AddLine(begin, end - begin);
    begin = end + 1;
  }
  uint64_t sum = 0;
  for (const Piece& line : feed.lines_) {
    sum += RecordBytes(kPrefixBytes + line.bytes);
  }
  feed.mean_record_bytes_ = sum / feed.lines_.size() + 1;
  return feed;
}

void Feed::AddLine(size_t begin, size_t bytes) {
  do {
    const size_t piece = std::min(bytes, kLineBytesMax);
    lines_.push_back({begin, piece});
    begin += piece;
    bytes -= piece;
  } while (bytes > 0);
}

std::string Feed::Record(uint64_t number) const {
  const Piece& line = lines_[number % lines_.size()];
  std::string record = absl::StrCat(number, "\t");
  record.append(text_, line.begin, line.bytes);
  return record;
}

std::optional<uint64_t> Feed::NumberOf(std::string_view record) {
  const std::string digits(record.substr(0, record.find('\t')));
  uint64_t number = 0;
  if (!absl::SimpleAtoi(digits, &number)) return std::nullopt;
  return number;
}

}  // namespace alpheus::demo
