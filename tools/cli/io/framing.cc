// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/framing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::cli {
namespace {

absl::Status TooLong(uint64_t index, uint64_t position,
                     const std::string& length, size_t record_bytes_max) {
  return absl::OutOfRangeError(absl::StrCat(
      "standard input: record ", index, ", counted from 0, at byte ", position,
      " has ", length, " bytes, more than the ", record_bytes_max,
      " that fit half the ring; split it, or format a larger region"));
}

class LineReader final : public FrameReader {
 public:
  LineReader(Input* input, size_t record_bytes_max)
      : input_(*input), record_bytes_max_(record_bytes_max) {}

  absl::StatusOr<bool> Next(std::string* record) override {
    if (begun_.empty()) start_ = input_.position();
    for (;;) {
      ALPHEUS_ASSIGN_OR_RETURN(const std::string_view bytes, input_.Peek());
      const size_t newline = bytes.find('\n');
      const std::string_view part = bytes.substr(0, newline);
      if (begun_.size() + part.size() > record_bytes_max_) {
        return TooLong(index_, start_,
                       absl::StrCat("at least ", begun_.size() + part.size()),
                       record_bytes_max_);
      }
      begun_.append(part);
      const bool ended = newline != std::string_view::npos;
      input_.Consume(part.size() + (ended ? 1 : 0));
      if (!ended && !bytes.empty()) continue;
      // At the end of input a line that has begun still counts.
      const bool found = ended || !begun_.empty();
      index_ += found ? 1 : 0;
      *record = std::exchange(begun_, "");
      return found;
    }
  }

 private:
  Input& input_;
  const size_t record_bytes_max_;
  uint64_t index_ = 0;
  // The record that has begun: reading may stop inside it, and go on later.
  std::string begun_;
  uint64_t start_ = 0;
};

class Len32Reader final : public FrameReader {
 public:
  Len32Reader(Input* input, size_t record_bytes_max)
      : input_(*input), record_bytes_max_(record_bytes_max) {}

  absl::StatusOr<bool> Next(std::string* record) override {
    if (begun_.empty()) start_ = input_.position();
    ALPHEUS_RETURN_IF_ERROR(Take(kLen32Bytes));
    if (begun_.empty()) return false;
    if (begun_.size() < kLen32Bytes) return CutOff("its length field");
    const uint32_t length = Length(begun_);
    if (length > record_bytes_max_) {
      return TooLong(index_, start_, absl::StrCat(length), record_bytes_max_);
    }
    ALPHEUS_RETURN_IF_ERROR(Take(kLen32Bytes + length));
    if (begun_.size() < kLen32Bytes + length) {
      return CutOff(absl::StrCat("its payload of ", length, " bytes"));
    }
    ++index_;
    record->assign(begun_, kLen32Bytes);
    begun_.clear();
    return true;
  }

 private:
  static uint32_t Length(std::string_view bytes) {
    uint32_t length = 0;
    for (size_t i = 0; i < kLen32Bytes; ++i) {
      length |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i]))
                << (8 * i);
    }
    return length;
  }

  // Reads until that many bytes of the record are there; fewer at the end of
  // input.
  absl::Status Take(size_t bytes) {
    while (begun_.size() < bytes) {
      ALPHEUS_ASSIGN_OR_RETURN(const std::string_view seen, input_.Peek());
      if (seen.empty()) break;
      const std::string_view part = seen.substr(0, bytes - begun_.size());
      begun_.append(part);
      input_.Consume(part.size());
    }
    return absl::OkStatus();
  }

  absl::Status CutOff(const std::string& where) const {
    return absl::OutOfRangeError(absl::StrCat(
        "standard input: ends at byte ", input_.position(), ", within ", where,
        " of record ", index_, ", counted from 0, which begins at byte ",
        start_, ". The input was cut off, or is not framed as len32"));
  }

  Input& input_;
  const size_t record_bytes_max_;
  uint64_t index_ = 0;
  std::string begun_;  // as in LineReader, with the length
  uint64_t start_ = 0;
};

}  // namespace

absl::StatusOr<Framing> ParseFraming(const std::string& name) {
  if (name == "lines") return Framing::kLines;
  if (name == "len32") return Framing::kLen32;
  return absl::InvalidArgumentError(
      absl::StrCat("--framing ", name, ": must be lines or len32"));
}

std::unique_ptr<FrameReader> MakeFrameReader(Framing framing, Input* input,
                                             size_t record_bytes_max) {
  if (framing == Framing::kLines) {
    return std::make_unique<LineReader>(input, record_bytes_max);
  }
  return std::make_unique<Len32Reader>(input, record_bytes_max);
}

absl::Status WriteFrame(Framing framing, std::string_view payload,
                        Output* output) {
  if (framing == Framing::kLines) {
    ALPHEUS_RETURN_IF_ERROR(output->Write(payload));
    return output->Write("\n");
  }
  std::array<char, kLen32Bytes> length;
  for (size_t i = 0; i < kLen32Bytes; ++i) {
    length[i] = static_cast<char>(payload.size() >> (8 * i));
  }
  ALPHEUS_RETURN_IF_ERROR(output->Write({length.data(), length.size()}));
  return output->Write(payload);
}

}  // namespace alpheus::cli
