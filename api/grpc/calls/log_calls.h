// SPDX-License-Identifier: Apache-2.0
// log_calls: the calls of the API (log_service.proto) on the logs of a node.
//
// Idea: no call waits on a thread. A call that is answered later leaves a
// callback with the log, which sends the answer.
//
// Thread safety: gRPC's threads.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_GRPC_CALLS_LOG_CALLS_H_
#define ALPHEUS_API_GRPC_CALLS_LOG_CALLS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <string>

#include "absl/status/status.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/grpc/access/access.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/log_use.h"
#include "api/grpc/calls/unary_call.h"
#include "api/service/served/served_logs.h"
#include "api/wiring/task_thread.h"

namespace alpheus::rpc {

class LogCalls final : public v1::LogService::CallbackService {
 public:
  // All must outlive it, and `tasks` all logs.
  LogCalls(service::ServedLogs& logs, TaskThread& tasks, const Access& access,
           CallCounts& counts)
      : logs_(logs), tasks_(tasks), access_(access), counts_(counts) {}

  grpc::ServerUnaryReactor* OpenClient(
      grpc::CallbackServerContext* context,
      const v1::OpenClientRequest* request,
      v1::OpenClientResponse* response) override;
  grpc::ServerUnaryReactor* ResumeClient(
      grpc::CallbackServerContext* context,
      const v1::ResumeClientRequest* request,
      v1::ResumeClientResponse* response) override;
  grpc::ServerUnaryReactor* CloseClient(
      grpc::CallbackServerContext* context,
      const v1::CloseClientRequest* request,
      v1::CloseClientResponse* response) override;
  grpc::ServerUnaryReactor* ListClients(
      grpc::CallbackServerContext* context,
      const v1::ListClientsRequest* request,
      v1::ListClientsResponse* response) override;
  grpc::ServerUnaryReactor* Append(grpc::CallbackServerContext* context,
                                   const v1::AppendRequest* request,
                                   v1::AppendResponse* response) override;
  grpc::ServerBidiReactor<v1::AppendStreamRequest, v1::AppendStreamResponse>*
  AppendStream(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Resolve(grpc::CallbackServerContext* context,
                                    const v1::ResolveRequest* request,
                                    v1::ResolveResponse* response) override;
  grpc::ServerUnaryReactor* Force(grpc::CallbackServerContext* context,
                                  const v1::ForceRequest* request,
                                  v1::ForceResponse* response) override;
  grpc::ServerUnaryReactor* WaitDurable(
      grpc::CallbackServerContext* context,
      const v1::WaitDurableRequest* request,
      v1::WaitDurableResponse* response) override;
  grpc::ServerWriteReactor<v1::ReadResponse>* Read(
      grpc::CallbackServerContext* context,
      const v1::ReadRequest* request) override;
  grpc::ServerBidiReactor<v1::TailRequest, v1::TailResponse>* Tail(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Cleanup(grpc::CallbackServerContext* context,
                                    const v1::CleanupRequest* request,
                                    v1::CleanupResponse* response) override;
  grpc::ServerUnaryReactor* GetExposure(
      grpc::CallbackServerContext* context,
      const v1::GetExposureRequest* request,
      v1::GetExposureResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* ListLogs(grpc::CallbackServerContext* context,
                                     const v1::ListLogsRequest* request,
                                     v1::ListLogsResponse* response) override;
  grpc::ServerUnaryReactor* DescribeDurability(
      grpc::CallbackServerContext* context,
      const v1::DescribeDurabilityRequest* request,
      v1::DescribeDurabilityResponse* response) override;
  grpc::ServerUnaryReactor* ListEpochs(
      grpc::CallbackServerContext* context,
      const v1::ListEpochsRequest* request,
      v1::ListEpochsResponse* response) override;

 private:
  // Errors: as Access::Check. It is the first that a call asks: others learn
  // nothing, not even that there is a log of that name (ACS1).
  absl::Status CheckAccess(const grpc::CallbackServerContext& context,
                           Roles roles, const std::string& log) const;
  // Finds the log of a call whose caller has one of the roles for it. Returns
  // none if it has refused the call.
  SharedUse Enter(const grpc::CallbackServerContext& context,
                  const UnaryCall& call, Roles roles, const std::string& log);

  // Answers an append once its verdict may be told.
  void AnswerAppend(const SharedUse& use, const service::Verdict& verdict,
                    const UnaryCall& call, const v1::AppendRequest& request,
                    v1::AppendResponse* response, bool is_timed);

  service::ServedLogs& logs_;
  TaskThread& tasks_;
  const Access& access_;
  CallCounts& counts_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_LOG_CALLS_H_
