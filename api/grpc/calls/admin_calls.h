// SPDX-License-Identifier: Apache-2.0
// admin_calls: the calls of an administrator (admin_service.proto).
//
// Idea: an order blocks for seconds or minutes, so each has a thread while it
// is carried out, and few are at once. A backup is a stream, and has none
// (backup_stream.h). When the call ends early, the order is
// told to wait no more, if it can; its thread ends by itself.
//
// Invariants:
//   ADC1. An order is begun only for a caller whose token is for this log and
//         has the role. A node that asks for no tokens begins none: everybody
//         on its machine could give it.
//   ADC2. A call is answered once: by the thread of its order, or, if no order
//         was begun, at once.
//   ADC3. An order that does not learn that its caller has gone ends within a
//         minute, names of hosts aside: a node that ends waits for it.
// Thread safety: gRPC's threads.
// References: docs/design/service.md; administrator.h.
#ifndef ALPHEUS_API_GRPC_CALLS_ADMIN_CALLS_H_
#define ALPHEUS_API_GRPC_CALLS_ADMIN_CALLS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "alpheus/candidate.h"
#include "alpheus/v1/admin_service.grpc.pb.h"
#include "api/admin/administrator.h"
#include "api/grpc/access/access.h"
#include "api/grpc/calls/call_counts.h"
#include "api/service/served/served_logs.h"
#include "api/wiring/job_threads.h"

namespace alpheus::rpc {

// How long an order may take, in milliseconds.
struct OrderTimes {
  uint32_t default_ms = 0;  // if its call has no deadline
  uint32_t max_ms = 0;
};

class AdminCalls final : public v1::AdminService::CallbackService {
 public:
  // All must outlive it. Without an administrator each order is refused
  // (FAILED_PRECONDITION).
  AdminCalls(service::ServedLogs& logs, JobThreads& jobs, const Access& access,
             CallCounts& counts, Administrator* administrator)
      : logs_(logs),
        jobs_(jobs),
        access_(access),
        counts_(counts),
        administrator_(administrator) {}

  grpc::ServerUnaryReactor* Elect(grpc::CallbackServerContext* context,
                                  const v1::ElectRequest* request,
                                  v1::ElectResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* Scrub(grpc::CallbackServerContext* context,
                                  const v1::ScrubRequest* request,
                                  v1::ScrubResponse* response) override;
  grpc::ServerUnaryReactor* Replace(grpc::CallbackServerContext* context,
                                    const v1::ReplaceRequest* request,
                                    v1::ReplaceResponse* response) override;
  grpc::ServerUnaryReactor* Reconfigure(
      grpc::CallbackServerContext* context,
      const v1::ReconfigureRequest* request,
      v1::ReconfigureResponse* response) override;
  grpc::ServerUnaryReactor* CreateLog(grpc::CallbackServerContext* context,
                                      const v1::CreateLogRequest* request,
                                      v1::CreateLogResponse* response) override;
  grpc::ServerWriteReactor<v1::BackupResponse>* Backup(
      grpc::CallbackServerContext* context,
      const v1::BackupRequest* request) override;
  grpc::ServerUnaryReactor* DeleteLog(grpc::CallbackServerContext* context,
                                      const v1::DeleteLogRequest* request,
                                      v1::DeleteLogResponse* response) override;

 private:
  // Carries an order out, and fills its response.
  using Order = std::function<absl::Status(Administrator& administrator,
                                           const OrderBounds& bounds)>;

  // Has the order carried out, and answers then.
  grpc::ServerUnaryReactor* Begin(const grpc::CallbackServerContext& context,
                                  Method method, const std::string& log,
                                  const OrderTimes& times, Order order);
  // Returns why the node takes no orders; OK if it does.
  absl::Status TakesOrders() const;
  void SetPrimary(const PrimaryReport& report, v1::Primary* out);

  service::ServedLogs& logs_;
  JobThreads& jobs_;
  const Access& access_;
  CallCounts& counts_;
  Administrator* const administrator_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_ADMIN_CALLS_H_
