// SPDX-License-Identifier: Apache-2.0
// log_client: what tests say to a server of logs, and what it answers.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_API_GRPC_LOG_CLIENT_H_
#define ALPHEUS_TESTS_API_GRPC_LOG_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "alpheus/v1/log_service.grpc.pb.h"

namespace alpheus::testing {

// Returns what the details of a status say; nothing set if there are none.
v1::RequestError ErrorIn(const grpc::Status& status);

v1::Payload PayloadOf(const std::string& data);

// A server, and a client of its log "main" that numbers its requests.
class LogClient {
 public:
  explicit LogClient(const std::string& address);
  // With these credentials, and this token in all calls; empty: none. All calls
  // of one object share connections with no other one.
  LogClient(const std::string& address,
            const std::shared_ptr<grpc::ChannelCredentials>& credentials,
            std::string shown);

  v1::LogService::Stub& stub() { return *stub_; }
  const std::shared_ptr<grpc::Channel>& channel() { return channel_; }

  // Shows the token.
  void Authorize(grpc::ClientContext* context) const;

  // Begins a client; its name and epoch are those below.
  grpc::Status Open();
  // Appends with the next sequence, as the client of `open`.
  grpc::Status Append(const std::string& data, v1::AppendResponse* response);
  grpc::Status Append(const v1::AppendRequest& request,
                      v1::AppendResponse* response);
  // The request with the next sequence.
  v1::AppendRequest Request(const std::string& data) const;
  v1::AppendRequest Request(uint64_t sequence, const std::string& data) const;
  // Resumes the client, which has sent nothing in a later epoch than this; its
  // epoch and resumption are those below.
  grpc::Status Resume(uint64_t lowest_unanswered, uint64_t last_epoch,
                      v1::ResumeClientResponse* response);
  grpc::Status Resolve(uint64_t sequence, uint64_t last_epoch,
                       v1::ResolveResponse* response);
  // Reads all durable records.
  grpc::Status Read(const v1::ReadRequest& request,
                    std::vector<v1::Record>* records);
  std::vector<std::string> ReadAll();

  v1::Place client;
  uint64_t epoch = 0;
  uint64_t resumption = 0;
  uint64_t next = 1;
  std::string token;

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::LogService::Stub> stub_;
};

// A stream of appends.
class AppendingStream {
 public:
  using Stream = grpc::ClientReaderWriter<v1::AppendStreamRequest,
                                          v1::AppendStreamResponse>;

  // Begins it as this client, with what else `begin` says.
  explicit AppendingStream(LogClient& client,
                           v1::AppendStreamRequest::Begin begin = {});
  // Begins nothing.
  static std::unique_ptr<AppendingStream> WithoutBegin(LogClient& client);

  bool Send(uint64_t first, const std::vector<std::string>& payloads,
            uint64_t lowest_unanswered = 1);
  Stream& stream() { return *stream_; }
  // Reads until `done` requests are done, or the last message. All answers are
  // joined.
  bool ReadUntilDone(uint64_t count);
  // Reads to the end, and returns the status.
  grpc::Status Finish();
  void Cancel() { context_.TryCancel(); }

  v1::AppendStreamResponse answers;
  uint64_t done = 0;  // requests

 private:
  AppendingStream(LogClient& client, bool begins,
                  v1::AppendStreamRequest::Begin begin);
  bool ReadOne();

  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_GRPC_LOG_CLIENT_H_
