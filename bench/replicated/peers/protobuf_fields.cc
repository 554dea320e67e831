// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/protobuf_fields.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;
constexpr uint32_t kKindBits = 3;
constexpr uint32_t kVarintBitsMax = 64;

void AppendVarint(uint64_t value, std::string* message) {
  for (; value >= 0x80; value >>= 7) {
    *message += static_cast<char>(value | 0x80);
  }
  *message += static_cast<char>(value);
}

absl::Status CutOff(std::string_view rest) {
  return absl::DataLossError(absl::StrCat(
      "protobuf: message ends inside a field, ", rest.size(), " bytes left"));
}

absl::StatusOr<uint64_t> TakeVarint(std::string_view* rest) {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < kVarintBitsMax; shift += 7) {
    if (rest->empty()) return CutOff(*rest);
    const auto byte = static_cast<uint8_t>(rest->front());
    rest->remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return absl::DataLossError("protobuf: number of more than 64 bits");
}

struct Field {
  uint32_t field = 0;
  uint32_t kind = kVarint;
  uint64_t number = 0;          // of a varint
  std::string_view bytes = {};  // of all others
};

absl::StatusOr<Field> TakeField(std::string_view* rest) {
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t tag, TakeVarint(rest));
  Field found{.field = static_cast<uint32_t>(tag >> kKindBits),
              .kind = static_cast<uint32_t>(tag & ((1u << kKindBits) - 1))};
  uint64_t size = 0;
  switch (found.kind) {
    case kVarint: {
      ALPHEUS_ASSIGN_OR_RETURN(found.number, TakeVarint(rest));
      return found;
    }
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kBytes: {
      ALPHEUS_ASSIGN_OR_RETURN(size, TakeVarint(rest));
      break;
    }
    default:
      return absl::DataLossError(absl::StrCat("protobuf: field ", found.field,
                                              " is of kind ", found.kind,
                                              ", which is unknown"));
  }
  if (size > rest->size()) return CutOff(*rest);
  found.bytes = rest->substr(0, size);
  rest->remove_prefix(size);
  return found;
}

absl::StatusOr<Field> Find(std::string_view message, uint32_t field,
                           uint32_t kind) {
  Field last{.field = field, .kind = kind};
  while (!message.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(const Field found, TakeField(&message));
    if (found.field == field) last = found;
  }
  if (last.kind == kind) return last;
  return absl::InvalidArgumentError(absl::StrCat("protobuf: field ", field,
                                                 " is of kind ", last.kind,
                                                 " instead of ", kind));
}

}  // namespace

void AppendNumberField(uint32_t field, uint64_t number, std::string* message) {
  AppendVarint(field << kKindBits | kVarint, message);
  AppendVarint(number, message);
}

void AppendBytesField(uint32_t field, std::string_view bytes,
                      std::string* message) {
  AppendVarint(uint64_t{field} << kKindBits | kBytes, message);
  AppendVarint(bytes.size(), message);
  message->append(bytes);
}

absl::StatusOr<uint64_t> NumberField(std::string_view message, uint32_t field) {
  ALPHEUS_ASSIGN_OR_RETURN(const Field found, Find(message, field, kVarint));
  return found.number;
}

absl::StatusOr<std::string_view> BytesField(std::string_view message,
                                            uint32_t field) {
  ALPHEUS_ASSIGN_OR_RETURN(const Field found, Find(message, field, kBytes));
  return found.bytes;
}

}  // namespace alpheus::bench::replicated
