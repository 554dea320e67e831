// SPDX-License-Identifier: Apache-2.0
// scripted_primary: a primary of a log in memory, on loopback, whose streams do
// as a test says: some answer, some are silent, some end.
//
// As a real one it knows its clients by their openings. It appends the next
// request of each client alone, and none of a stream that was begun before its
// last resumption (CLR4, client_requests.h).
//
// Thread safety: all concurrently.
#ifndef ALPHEUS_TESTS_API_CLIENT_GRPC_SCRIPTED_PRIMARY_H_
#define ALPHEUS_TESTS_API_CLIENT_GRPC_SCRIPTED_PRIMARY_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "alpheus/v1/log_service.grpc.pb.h"

namespace alpheus::testing {

class ScriptedPrimary final : public v1::LogService::Service {
 public:
  // How one stream behaves.
  enum class Stream {
    kAnswers,
    kDropsAndIsSilent,  // appends nothing
    kTakesAndIsSilent,  // appends, and does not say so
    kEnds,              // when its first request comes
  };

  // `script`: the first streams; all others answer. The answers to the first
  // `lost_openings` calls of OpenClient are lost.
  explicit ScriptedPrimary(std::deque<Stream> script = {},
                           int lost_openings = 0);
  ~ScriptedPrimary() override;

  std::string address() const;
  // Payloads that it has, in the order of their LSNs.
  std::vector<std::string> appended() const;
  // The same by message, joined: those of one message are one text.
  std::vector<std::string> messages() const;
  // Keys of the calls of OpenClient, each time.
  std::vector<std::string> keys() const;
  // How many streams began, and how many clients were closed.
  int streams() const;
  int closed() const;

 private:
  using Context = grpc::ServerContext;

  struct Client {
    uint64_t resumption = 0;
    uint64_t last = 0;  // its last request here
  };

  grpc::Status OpenClient(Context* context,
                          const v1::OpenClientRequest* request,
                          v1::OpenClientResponse* response) override;
  grpc::Status ResumeClient(Context* context,
                            const v1::ResumeClientRequest* request,
                            v1::ResumeClientResponse* response) override;
  grpc::Status CloseClient(Context* context,
                           const v1::CloseClientRequest* request,
                           v1::CloseClientResponse* response) override;
  grpc::Status AppendStream(
      Context* context,
      grpc::ServerReaderWriter<v1::AppendStreamResponse,
                               v1::AppendStreamRequest>* stream) override;
  // Appends what is new, and returns the answer.
  v1::AppendStreamResponse AppendNew(
      const v1::AppendStreamRequest::Begin& begin,
      const v1::AppendStreamRequest::Requests& requests);

  mutable std::mutex mutex_;  // guards all below but the server
  std::deque<Stream> script_;
  std::vector<std::string> appended_;
  std::vector<std::string> messages_;
  std::vector<std::string> keys_;
  std::map<std::string, uint64_t> opened_;  // LSNs of openings, by key
  int lost_openings_ = 0;
  std::map<uint64_t, Client> clients_;  // by the LSNs of their openings
  int streams_ = 0;
  int closed_ = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_CLIENT_GRPC_SCRIPTED_PRIMARY_H_
