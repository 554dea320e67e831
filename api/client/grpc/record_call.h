// SPDX-License-Identifier: Apache-2.0
// record_call: one call that brings records of a log, a message at a time.
//
// Idea: gRPC reads the next message only when the one before is released. So a
// reader that is slow holds one message, and what gRPC buffers.
//
// Thread safety: one thread at a time, except Cancel.
#ifndef ALPHEUS_API_CLIENT_GRPC_RECORD_CALL_H_
#define ALPHEUS_API_CLIENT_GRPC_RECORD_CALL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/client/grpc/channel_security.h"

namespace alpheus::client {

class RecordCall {
 public:
  using Records = google::protobuf::RepeatedPtrField<v1::Record>;
  using Stub = v1::LogService::Stub;

  enum class State {
    kWaiting,  // nothing has come
    kMessage,  // records() and next_lsn() are valid, until Release
    kEnded,    // status() is valid
  };

  // Reads records that are durable, and ends.
  static std::unique_ptr<RecordCall> Read(Stub& stub,
                                          const ChannelSecurity& security,
                                          const v1::ReadRequest& request);
  // Reads records as they become durable. At most `credit` bytes and one record
  // are under way.
  static std::unique_ptr<RecordCall> Tail(Stub& stub,
                                          const ChannelSecurity& security,
                                          const v1::TailRequest::Begin& begin,
                                          uint64_t credit);
  // Cancels the call, and waits for its end, which comes soon.
  virtual ~RecordCall() = default;
  RecordCall(const RecordCall&) = delete;
  RecordCall& operator=(const RecordCall&) = delete;

  // Waits until the state is another one than kWaiting, at most so long.
  virtual State Await(std::chrono::nanoseconds timeout) = 0;
  virtual const Records& records() const = 0;
  // All records before this LSN were read, or passed over for their tags.
  virtual uint64_t next_lsn() const = 0;
  // Drops a message with so many bytes of payloads, and reads the next one.
  virtual void Release(uint64_t payload_bytes) = 0;
  virtual const grpc::Status& status() const = 0;
  // Ends the call soon. By any thread.
  virtual void Cancel() = 0;

 protected:
  RecordCall() = default;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_RECORD_CALL_H_
