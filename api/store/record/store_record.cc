// SPDX-License-Identifier: Apache-2.0
#include "api/store/record/store_record.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::store {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::byte kMagic[] = {std::byte{'A'}, std::byte{'O'}};
constexpr auto kVersion = std::byte{1};

template <class Value>
void Store(Value value, std::byte* out) {
  std::memcpy(out, &value, sizeof(value));
}

template <class Value>
Value Load(const std::byte* in) {
  Value value{};
  std::memcpy(&value, in, sizeof(value));
  return value;
}

absl::Status Impossible(absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("impossible record of the store: ", why));
}

}  // namespace

void EncodeStoreRecordHeader(
    const StoreRecordHeader& header,
    std::span<std::byte, kStoreRecordHeaderBytes> out) {
  std::ranges::copy(kMagic, out.begin());
  out[2] = kVersion;
  out[3] = static_cast<std::byte>(header.kind);
  Store(header.count, &out[4]);
  Store(header.time_ns, &out[8]);
}

absl::StatusOr<StoreRecordHeader> DecodeStoreRecordHeader(
    std::span<const std::byte> payload) {
  if (payload.size() < kStoreRecordHeaderBytes ||
      !std::ranges::equal(payload.first(sizeof(kMagic)), kMagic)) {
    return absl::FailedPreconditionError(
        "not a record of the store: this log is used for something else. Give "
        "the store a log of its own");
  }
  const auto kind = static_cast<StoreRecordKind>(payload[3]);
  const bool is_known =
      kind == StoreRecordKind::kObjects || kind == StoreRecordKind::kTime;
  if (payload[2] != kVersion || !is_known) {
    return absl::UnimplementedError(absl::StrCat(
        "record of version ", static_cast<int>(payload[2]), " and kind ",
        static_cast<int>(payload[3]),
        " of the store; this one knows version 1 and kinds 1 and 2. Use the "
        "store that wrote it, or a later one"));
  }
  const StoreRecordHeader header = {kind, Load<uint32_t>(&payload[4]),
                                    Load<int64_t>(&payload[8])};
  const bool is_empty = payload.size() == kStoreRecordHeaderBytes;
  if (kind == StoreRecordKind::kObjects ? header.count == 0 || is_empty
                                        : header.count != 0 || !is_empty) {
    return Impossible(absl::StrCat("kind ", static_cast<int>(kind), ", count ",
                                   header.count, ", ", payload.size(),
                                   " bytes"));
  }
  return header;
}

absl::Status ForEachObject(
    std::span<const std::byte> payload, uint32_t count,
    absl::FunctionRef<absl::Status(size_t offset, const DecodedObject& object)>
        visit) {
  size_t offset = kStoreRecordHeaderBytes;
  for (uint32_t i = 0; i < count; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(const DecodedObject decoded,
                             DecodeObject(payload.subspan(offset)));
    ALPHEUS_RETURN_IF_ERROR(visit(offset, decoded));
    offset += decoded.encoded_bytes;
  }
  if (offset == payload.size()) return absl::OkStatus();
  return Impossible(absl::StrCat(payload.size() - offset,
                                 " bytes behind the last of ", count,
                                 " objects"));
}

}  // namespace alpheus::store
