// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/record_reader.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "api/grpc/wire/messages.h"
#include "api/service/record/service_record.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"

namespace alpheus::rpc {
namespace {

// A record has some bytes beside its payload, so empty ones fill a message too.
constexpr size_t kRecordBytes = 64;
// Bytes that are passed over in one message at most: another stream's turn
// comes, and the reader learns how far it is.
constexpr size_t kPassedBytesMax = size_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(
    Log& log, Lsn from, const Tags& tags) {
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<LogTail> tail, log.Tail(from));
  return std::unique_ptr<RecordReader>(new RecordReader(std::move(tail), tags));
}

RecordReader::RecordReader(std::unique_ptr<LogTail> tail, const Tags& tags)
    : tail_(std::move(tail)), tags_(tags.begin(), tags.end()) {}

absl::StatusOr<RecordReader::Taken> RecordReader::Read(size_t bytes_max,
                                                       Lsn last,
                                                       Records* records) {
  Taken taken;
  size_t filled = 0;
  size_t passed = 0;
  while (filled < bytes_max) {
    if (next_lsn() > last) {
      taken.is_at_end = true;
      return taken;
    }
    ALPHEUS_ASSIGN_OR_RETURN(const std::optional<TailRecord> record,
                             tail_->Next());
    // An aborted LSN may have moved the tail behind the last one.
    if (!record || record->lsn > last) {
      taken.is_at_end = true;
      return taken;
    }
    const int count = records->size();
    ALPHEUS_ASSIGN_OR_RETURN(const size_t bytes, Add(*record, records));
    if (records->size() > count) {
      taken.payload_bytes += bytes;
      filled += bytes + kRecordBytes;
      continue;
    }
    passed += record->payload.size() + kRecordBytes;
    if (passed >= kPassedBytesMax) {
      taken.is_far = true;
      return taken;
    }
  }
  return taken;
}

absl::StatusOr<size_t> RecordReader::Add(const TailRecord& record,
                                         Records* records) const {
  ALPHEUS_ASSIGN_OR_RETURN(const service::ServiceRecord decoded,
                           service::DecodeServiceRecord(record.payload));
  const service::Envelope& envelope = decoded.envelope;
  const bool is_batch = envelope.kind == service::ServiceRecordKind::kBatch;
  if (!is_batch && envelope.kind != service::ServiceRecordKind::kAppend) {
    return 0;
  }
  if (!tags_.empty() && !tags_.contains(envelope.tag)) return 0;
  std::vector<std::span<const std::byte>> payloads = {decoded.body};
  if (is_batch) {
    ALPHEUS_ASSIGN_OR_RETURN(payloads, service::DecodeBatch(decoded.body));
  }
  v1::Record* const out = records->Add();
  SetPlace({record.epoch, record.lsn}, out->mutable_place());
  SetPlace(envelope.client.opened, out->mutable_client());
  out->set_sequence(envelope.sequence);
  out->set_tag(envelope.tag);
  size_t bytes = 0;
  for (const auto payload : payloads) {
    out->add_payloads(payload.data(), payload.size());
    bytes += payload.size();
  }
  return bytes;
}

}  // namespace alpheus::rpc
