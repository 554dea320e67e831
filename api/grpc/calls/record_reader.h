// SPDX-License-Identifier: Apache-2.0
// record_reader: reads durable records of a log into messages.
//
// Records that the service has appended for itself are left out, and so are
// those with other tags than were asked for.
//
// Thread safety: one thread at a time, which has a use of the log.
#ifndef ALPHEUS_API_GRPC_CALLS_RECORD_READER_H_
#define ALPHEUS_API_GRPC_CALLS_RECORD_READER_H_

#include <google/protobuf/repeated_ptr_field.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "alpheus/log_tail.h"
#include "alpheus/v1/log_service.pb.h"
#include "log/base/ids.h"

namespace alpheus::rpc {

class RecordReader {
 public:
  using Records = google::protobuf::RepeatedPtrField<v1::Record>;
  using Tags = google::protobuf::RepeatedField<uint32_t>;

  // The records of one message.
  struct Taken {
    size_t payload_bytes = 0;
    // All records that are durable, or were asked for, have been read.
    bool is_at_end = false;
    // Enough was passed over that the reader should be told of its place.
    bool is_far = false;
  };

  // Begins at this LSN; 0: at the oldest record. No tags: all records. Errors:
  // as Log::Tail.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(Log& log, Lsn from,
                                                            const Tags& tags);

  // Adds records up to this LSN until they have so many bytes, or none is left.
  // Errors: as LogTail::Next; DataLoss (no record of the service).
  absl::StatusOr<Taken> Read(size_t bytes_max, Lsn last, Records* records);
  // Returns the LSN that comes next.
  Lsn next_lsn() const { return tail_->next_lsn(); }
  // Returns the LSN that was durable at the last Read.
  Lsn durable_lsn() const { return tail_->durable_lsn(); }

 private:
  RecordReader(std::unique_ptr<LogTail> tail, const Tags& tags);

  // Adds a record, if it is asked for. Returns the bytes of its payloads.
  absl::StatusOr<size_t> Add(const TailRecord& record, Records* records) const;

  const std::unique_ptr<LogTail> tail_;
  const std::set<uint32_t> tags_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_RECORD_READER_H_
