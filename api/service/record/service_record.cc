// SPDX-License-Identifier: Apache-2.0
#include "api/service/record/service_record.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::service {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::byte kMagic[] = {std::byte{'A'}, std::byte{'S'}};
constexpr uint8_t kVersion = 1;

template <class Value>
void Store(Value value, std::byte* out) {
  std::memcpy(out, &value, sizeof(value));
}

template <class Value>
Value Load(const std::byte* in) {
  Value value = 0;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

void StorePlace(const Place& place, std::byte* out) {
  Store(place.epoch.value, out);
  Store(place.lsn.value, out + 8);
}

Place LoadPlace(const std::byte* in) {
  return {Epoch(Load<uint64_t>(in)), Lsn(Load<uint64_t>(in + 8))};
}

bool IsKnown(ServiceRecordKind kind) {
  return kind >= ServiceRecordKind::kAppend && kind <= ServiceRecordKind::kKeys;
}

// Returns whether a record of a known kind is possible.
bool IsPossible(const ServiceRecord& record) {
  const Envelope& envelope = record.envelope;
  switch (envelope.kind) {
    case ServiceRecordKind::kAppend:
    case ServiceRecordKind::kBatch:
      return !envelope.client.is_none() && envelope.sequence > 0;
    case ServiceRecordKind::kOpen:
      return envelope.client == ClientId() && envelope.sequence == 0 &&
             record.body.empty();
    case ServiceRecordKind::kOpenByKey:
      return envelope.client == ClientId() && envelope.sequence == 0 &&
             record.body.size() == kKeyBytes;
    case ServiceRecordKind::kClose:
      return !envelope.client.is_none() && record.body.empty();
    case ServiceRecordKind::kTable:
      return envelope.client == ClientId() && envelope.sequence == 0 &&
             envelope.tag == 0 && !record.body.empty() &&
             record.body.size() % kTableEntryBytes == 0;
    case ServiceRecordKind::kKeys:
      return envelope.client == ClientId() && envelope.sequence == 0 &&
             envelope.tag == 0 && !record.body.empty() &&
             record.body.size() % kKeyEntryBytes == 0;
  }
  return false;
}

const char* KindName(ServiceRecordKind kind) {
  switch (kind) {
    case ServiceRecordKind::kAppend:
      return "append";
    case ServiceRecordKind::kBatch:
      return "batch";
    case ServiceRecordKind::kOpen:
      return "open";
    case ServiceRecordKind::kClose:
      return "close";
    case ServiceRecordKind::kTable:
      return "table";
    case ServiceRecordKind::kOpenByKey:
      return "open by key";
    case ServiceRecordKind::kKeys:
      return "keys";
  }
  return "unknown";
}

absl::Status Impossible(const std::string& why) {
  return absl::DataLossError(
      absl::StrCat("impossible record of the service: ", why));
}

absl::StatusOr<TableEntry> DecodeEntry(std::span<const std::byte> bytes) {
  const TableEntry entry = {{LoadPlace(bytes.data())},
                            Load<uint64_t>(&bytes[16]),
                            LoadPlace(&bytes[24]),
                            bytes[40] == std::byte{1}};
  const bool is_possible =
      !entry.client.is_none() && bytes[40] <= std::byte{1} &&
      std::ranges::all_of(bytes.subspan(41),
                          [](std::byte one) { return one == std::byte{0}; });
  if (!is_possible) {
    return Impossible(absl::StrCat("client ", entry.client.ToString(),
                                   " of a table: its last byte is ",
                                   static_cast<int>(bytes[40])));
  }
  return entry;
}

}  // namespace

std::string ClientId::ToString() const {
  return absl::StrCat(opened.epoch.value, "/", opened.lsn.value);
}

void EncodeEnvelope(const Envelope& envelope,
                    std::span<std::byte, kEnvelopeBytes> out) {
  std::ranges::copy(kMagic, out.begin());
  out[2] = static_cast<std::byte>(kVersion);
  out[3] = static_cast<std::byte>(envelope.kind);
  Store(envelope.tag, &out[4]);
  StorePlace(envelope.client.opened, &out[8]);
  Store(envelope.sequence, &out[24]);
}

absl::StatusOr<ServiceRecord> DecodeServiceRecord(
    std::span<const std::byte> payload) {
  if (payload.size() < kEnvelopeBytes ||
      !std::ranges::equal(payload.first(sizeof(kMagic)), kMagic)) {
    return absl::FailedPreconditionError(
        "not a record of the service: this log is used for something else. "
        "Give the service a log of its own");
  }
  const auto kind = static_cast<ServiceRecordKind>(payload[3]);
  if (static_cast<uint8_t>(payload[2]) != kVersion || !IsKnown(kind)) {
    return absl::UnimplementedError(absl::StrCat(
        "record of version ", static_cast<int>(payload[2]), " and kind ",
        static_cast<int>(payload[3]),
        " of the service; this one knows version 1 and kinds 1 to 7. Use the "
        "service that wrote it, or a later one"));
  }
  const ServiceRecord record = {{kind,
                                 Load<uint32_t>(&payload[4]),
                                 {LoadPlace(&payload[8])},
                                 Load<uint64_t>(&payload[24])},
                                payload.subspan(kEnvelopeBytes)};
  if (!IsPossible(record)) return Impossible(DescribeServiceRecord(record));
  return record;
}

std::vector<std::byte> EncodeBatchHead(
    std::span<const std::span<const std::byte>> payloads) {
  ALPHEUS_CHECK(!payloads.empty() && payloads.size() <= kBatchMax,
                "a batch has 1 to 2^20 payloads");
  std::vector<std::byte> head(sizeof(uint32_t) * (1 + payloads.size()));
  Store(static_cast<uint32_t>(payloads.size()), head.data());
  for (size_t i = 0; i < payloads.size(); ++i) {
    Store(static_cast<uint32_t>(payloads[i].size()),
          &head[sizeof(uint32_t) * (1 + i)]);
  }
  return head;
}

absl::StatusOr<std::vector<std::span<const std::byte>>> DecodeBatch(
    std::span<const std::byte> body) {
  constexpr size_t kWord = sizeof(uint32_t);
  if (body.size() < kWord) return Impossible("a batch without a number");
  const size_t count = Load<uint32_t>(body.data());
  if (count == 0 || count > kBatchMax || body.size() < kWord * (1 + count)) {
    return Impossible(absl::StrCat("a batch of ", count, " payloads in ",
                                   body.size(), " bytes"));
  }
  std::vector<std::span<const std::byte>> payloads;
  payloads.reserve(count);
  std::span<const std::byte> rest = body.subspan(kWord * (1 + count));
  for (size_t i = 0; i < count; ++i) {
    const size_t length = Load<uint32_t>(&body[kWord * (1 + i)]);
    if (length > rest.size()) {
      return Impossible(absl::StrCat("payload ", i, " of a batch has ", length,
                                     " bytes, and ", rest.size(), " are left"));
    }
    payloads.push_back(rest.first(length));
    rest = rest.subspan(length);
  }
  if (!rest.empty()) {
    return Impossible(absl::StrCat("a batch with ", rest.size(),
                                   " bytes behind its last payload"));
  }
  return payloads;
}

std::vector<std::byte> EncodeTable(std::span<const TableEntry> entries) {
  std::vector<std::byte> bytes(entries.size() * kTableEntryBytes);
  std::byte* out = bytes.data();
  for (const TableEntry& entry : entries) {
    StorePlace(entry.client.opened, out);
    Store(entry.sequence, out + 16);
    StorePlace(entry.place, out + 24);
    out[40] = static_cast<std::byte>(entry.is_closed ? 1 : 0);
    out += kTableEntryBytes;
  }
  return bytes;
}

absl::StatusOr<std::vector<TableEntry>> DecodeTable(
    std::span<const std::byte> body) {
  std::vector<TableEntry> entries;
  entries.reserve(body.size() / kTableEntryBytes);
  for (size_t at = 0; at + kTableEntryBytes <= body.size();
       at += kTableEntryBytes) {
    absl::StatusOr<TableEntry> entry =
        DecodeEntry(body.subspan(at, kTableEntryBytes));
    if (!entry.ok()) return entry.status();
    entries.push_back(*entry);
  }
  return entries;
}

std::vector<std::byte> EncodeKeys(std::span<const KeyEntry> entries) {
  std::vector<std::byte> bytes(entries.size() * kKeyEntryBytes);
  std::byte* out = bytes.data();
  for (const KeyEntry& entry : entries) {
    StorePlace(entry.client.opened, out);
    std::ranges::copy(entry.key, out + 16);
    out += kKeyEntryBytes;
  }
  return bytes;
}

absl::StatusOr<std::vector<KeyEntry>> DecodeKeys(
    std::span<const std::byte> body) {
  std::vector<KeyEntry> entries;
  entries.reserve(body.size() / kKeyEntryBytes);
  for (size_t at = 0; at + kKeyEntryBytes <= body.size();
       at += kKeyEntryBytes) {
    KeyEntry entry = {{LoadPlace(&body[at])}, {}};
    std::ranges::copy(body.subspan(at + 16, kKeyBytes), entry.key.begin());
    if (entry.client.is_none()) {
      return Impossible("a key of client 0/0, which is none");
    }
    entries.push_back(entry);
  }
  return entries;
}

std::string DescribeServiceRecord(const ServiceRecord& record) {
  const Envelope& envelope = record.envelope;
  if (envelope.kind == ServiceRecordKind::kTable) {
    return absl::StrCat("table of ", record.body.size() / kTableEntryBytes,
                        " clients");
  }
  if (envelope.kind == ServiceRecordKind::kKeys) {
    return absl::StrCat("keys of ", record.body.size() / kKeyEntryBytes,
                        " clients");
  }
  return absl::StrCat(KindName(envelope.kind), " of client ",
                      envelope.client.ToString(), ", sequence ",
                      envelope.sequence, ", tag ", envelope.tag, ", ",
                      record.body.size(), " bytes");
}

}  // namespace alpheus::service
