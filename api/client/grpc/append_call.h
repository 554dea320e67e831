// SPDX-License-Identifier: Apache-2.0
// append_call: one stream of requests to one primary, and its answers.
//
// Idea: at most one message is being written. Whatever the owner has to send
// when it is out goes into the next one, so a busy stream has few messages, and
// an idle one no delay.
//
// Invariants:
//   APC1. At most one read and one write are under way.
//   APC2. Nothing is sent after Close, or once the primary has said its last
//         message. The stream then ends by itself, or by Cancel.
// Thread safety: all members under the owner's lock. Lives until is_done().
#ifndef ALPHEUS_API_CLIENT_GRPC_APPEND_CALL_H_
#define ALPHEUS_API_CLIENT_GRPC_APPEND_CALL_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/client/append/append_session.h"
#include "api/client/grpc/channel_security.h"

namespace alpheus::client {

class AppendCall final
    : public grpc::ClientBidiReactor<v1::AppendStreamRequest,
                                     v1::AppendStreamResponse> {
 public:
  // The owner of the requests. All but OnTaken is called under its lock.
  class Owner {
   public:
    virtual std::mutex& mutex() = 0;
    // Returns what to send now; none: nothing yet.
    virtual std::optional<Sending> NextToSend() = 0;
    // A request was sent that has no answer yet.
    virtual bool IsAwaiting() const = 0;
    // Takes answers. Returns whether the stream is of use still.
    virtual bool Take(const v1::AppendStreamResponse& answers) = 0;
    // A Take has ended; without the lock.
    virtual void OnTaken() = 0;
    // is_done() is true now.
    virtual void OnEnded() = 0;

   protected:
    ~Owner() = default;
  };

  // Opens the stream with `begin`. Requires: the owner's lock.
  AppendCall(Owner& owner, v1::LogService::Stub& stub,
             const ChannelSecurity& security,
             const v1::AppendStreamRequest::Begin& begin);

  // Sends what there is to send.
  void Send();
  // Sends no more. The primary then ends the stream.
  void Close();
  // Ends the stream at once.
  void Cancel();
  bool is_done() const { return is_done_; }

  // Cancels a stream whose primary owes something, and has said nothing for so
  // long: an answer for `stall_ns`, or the end of a closed stream for
  // `answer_ns`. Returns whether it has stalled.
  bool CancelIfStalled(int64_t stall_ns, int64_t answer_ns);

 private:
  void EndWrites();
  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  Owner& owner_;
  grpc::ClientContext context_;
  v1::AppendStreamRequest request_;
  v1::AppendStreamResponse response_;
  int64_t owed_since_ns_ = 0;  // or the last message came then
  int64_t closed_at_ns_ = 0;
  bool is_writing_ = false;
  bool is_closing_ = false;
  bool is_done_ = false;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_APPEND_CALL_H_
