// SPDX-License-Identifier: Apache-2.0
// log_reader: reads durable records of a log of a cluster, from primary to
// primary.
//
//   alpheus::client::LogClientOptions options;
//   options.addresses = {"10.0.0.1:7411", "10.0.0.2:7411", "10.0.0.3:7411"};
//   auto reader = alpheus::client::LogReader::Start(options, {.from_lsn = 1});
//   while (auto record = (*reader)->Next(); record.ok()) Use(**record);
//
// Idea: only the primary has the log open. A reader that loses it goes on with
// the next one, at the LSN behind the last record that it has. Durable records
// are the same there. The reader has no thread: Next connects and waits.
//
// Invariants:
//   LGR1. Records come in the order of their LSNs, each once.
//   LGR2. A primary that says nothing for stall_ms is asked whether it is
//         primary still, and left if it does not say so.
// Thread safety: one thread at a time, except Cancel.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_CLIENT_GRPC_LOG_READER_H_
#define ALPHEUS_API_CLIENT_GRPC_LOG_READER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/client/append/append_session.h"
#include "api/client/grpc/channel_security.h"
#include "api/client/grpc/log_client_options.h"
#include "api/client/grpc/primary_finder.h"
#include "api/client/grpc/record_call.h"

namespace alpheus::client {

// A durable record.
struct Record {
  Place place;
  Place client;  // that appended it
  uint64_t sequence = 0;
  uint32_t tag = 0;
  std::vector<std::string> parts;  // one payload, or those of a batch
};

// Contents of a read that does not follow the log.
enum class Consistency {
  // Each record that anybody knew to be durable before the read began.
  kLinearizable,
  // The records of the node that answers. It asks no other node, so this is
  // faster;
  // but records may be missing that another primary has appended meanwhile.
  kLocal,
};

struct ReadOptions {
  // The first record; 0: the oldest that is not cleaned.
  uint64_t from_lsn = 0;
  // Goes on with records that become durable later, without end.
  bool follows = true;
  // The last record, unless `follows`; 0: the last that is durable now.
  uint64_t to_lsn = 0;
  // Contents, unless it `follows`. A reader that is handed on to another
  // primary begins to read again there.
  Consistency consistency = Consistency::kLinearizable;
  // Records with one of these tags only; none: all.
  std::vector<uint32_t> tags = {};
  // Bytes of payloads that may be on their way to a reader that follows. One
  // record may be larger.
  uint64_t credit_bytes = uint64_t{1} << 20;
};

class LogReader {
 public:
  // Does not connect yet. Errors: InvalidArgument (no address); as
  // ChannelSecurity::Load.
  static absl::StatusOr<std::unique_ptr<LogReader>> Start(
      LogClientOptions options, ReadOptions read);
  ~LogReader() = default;
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Returns the next record; none: the last one was returned. Waits for as long
  // as `timeout`. Errors: DeadlineExceeded (nothing came; call again);
  // OutOfRange (the record was cleaned; head_lsn() says where the log begins);
  // DataLoss (a record can't be read any more); NotFound (no such log);
  // Cancelled; InvalidArgument; those that say that no node lets this program
  // read.
  absl::StatusOr<std::optional<Record>> Next(
      absl::Duration timeout = absl::InfiniteDuration());
  // All records before this LSN were returned, or have none of the tags.
  uint64_t next_lsn() const { return next_lsn_; }
  // After OutOfRange: the oldest LSN that is not cleaned.
  uint64_t head_lsn() const { return head_lsn_; }
  // Has a Next that waits return Cancelled, and each later one. By any thread.
  void Cancel();

 private:
  using Stub = PrimaryFinder::Stub;

  LogReader(LogClientOptions options, ReadOptions read,
            ChannelSecurity security);

  // Takes the next record of the message that is there.
  std::optional<Record> TakeRecord();
  // Finds the primary, and begins a call there. Errors: as Next.
  absl::Status Connect(int64_t end_ns);
  void BeginCall(Stub& stub);
  // Waits for a message of the call, or for its end. Errors: as Next.
  absl::Status Await(int64_t end_ns);
  // Returns the error of a call, if no other node would do better; else OK.
  absl::Status FinalErrorOf(const grpc::Status& status);
  void DropCall();

  const LogClientOptions options_;
  const ReadOptions read_;
  PrimaryFinder finder_;
  Stub* primary_ = nullptr;  // of the call
  uint64_t next_lsn_;
  uint64_t head_lsn_ = 0;
  bool has_message_ = false;
  int taken_ = 0;             // records of the message
  uint64_t taken_bytes_ = 0;  // and bytes of their payloads
  bool is_at_end_ = false;

  std::mutex mutex_;  // guards the call, which the thread reads without it
  std::unique_ptr<RecordCall> call_;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_LOG_READER_H_
