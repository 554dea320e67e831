// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/admin_calls.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "alpheus/options.h"
#include "alpheus/recovery_report.h"
#include "api/admin/cluster_scrub.h"
#include "api/admin/delete_log.h"
#include "api/grpc/calls/backup_stream.h"
#include "api/grpc/calls/shown_token.h"
#include "api/grpc/wire/admin_messages.h"
#include "api/grpc/wire/call_error.h"
#include "log/base/ids.h"
#include "log/base/status_macros.h"

namespace alpheus::rpc {

namespace {

using grpc::ServerUnaryReactor;

// An order that learns that its caller has gone may take an hour. A node that
// ends waits for the others, so these have a minute.
constexpr uint32_t kHourMs = 3'600'000;
constexpr uint32_t kMinuteMs = 60'000;
constexpr OrderTimes kElectTimes = {10'000, kHourMs};
constexpr OrderTimes kScrubTimes = {kHourMs, kHourMs};
constexpr OrderTimes kChangeTimes = {kMinuteMs, kMinuteMs};
constexpr OrderTimes kCreateTimes = {30'000, kMinuteMs};

// Returns the time for an order: nine tenths of what the call has, so that the
// answer comes before its caller gives up.
uint32_t MillisFor(const grpc::CallbackServerContext& context,
                   const OrderTimes& times) {
  const gpr_timespec end = context.raw_deadline();
  if (gpr_time_cmp(end, gpr_inf_future(end.clock_type)) == 0) {
    return times.default_ms;
  }
  const gpr_timespec left = gpr_time_sub(end, gpr_now(end.clock_type));
  const int64_t millis = int64_t{gpr_time_to_millis(left)} / 10 * 9;
  return static_cast<uint32_t>(std::clamp<int64_t>(millis, 1, times.max_ms));
}

class OrderReactor final : public ServerUnaryReactor {
 public:
  OrderReactor(CallCounts& counts, Method method)
      : counts_(counts), method_(method), began_ns_(counts.NowNanos()) {}

  // Whether the caller has gone; outlives this object.
  std::shared_ptr<const std::atomic<bool>> is_left() const { return is_left_; }

  // Sends the answer. Called once.
  void Answer(const grpc::Status& status) {
    // The call may be over as soon as it is answered.
    counts_.NoteCall(method_, status.error_code(), began_ns_);
    Finish(status);
  }
  ServerUnaryReactor* Refuse(const CallError& error) {
    Answer(error.ToStatus());
    return this;
  }

 private:
  void OnCancel() override { is_left_->store(true, std::memory_order_relaxed); }
  void OnDone() override { delete this; }

  CallCounts& counts_;
  const Method method_;
  const int64_t began_ns_;
  const std::shared_ptr<std::atomic<bool>> is_left_ =
      std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

ServerUnaryReactor* AdminCalls::Begin(
    const grpc::CallbackServerContext& context, Method method,
    const std::string& log, const OrderTimes& times, Order order) {
  auto* const reactor = new OrderReactor(counts_, method);
  const absl::Status may =
      access_.Check(ShownIn(context, access_), Role::kAdmin, log);
  if (!may.ok()) return reactor->Refuse(NotAllowed(may));
  const absl::Status takes = TakesOrders();
  if (!takes.ok()) return reactor->Refuse(ErrorOfOrder(takes));
  if (administrator_ == nullptr) {
    return reactor->Refuse(ErrorOfOrder(absl::FailedPreconditionError(
        "this node is of no cluster, and takes no orders")));
  }
  const OrderBounds bounds = {MillisFor(context, times),
                              [is_left = reactor->is_left()] {
                                return is_left->load(std::memory_order_relaxed);
                              }};
  const absl::Status begun =
      jobs_.Begin([this, reactor, bounds, order = std::move(order)] {
        const absl::Status done = order(*administrator_, bounds);
        reactor->Answer(done.ok() ? grpc::Status::OK
                                  : ErrorOfOrder(done).ToStatus());
      });
  if (!begun.ok()) return reactor->Refuse(ErrorOfOrder(begun));
  return reactor;
}

absl::Status AdminCalls::TakesOrders() const {
  if (access_.asks_for_tokens()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this node takes no orders: it asks its clients for no tokens, so "
      "anybody here could give them. Give alpheusd --tokens, or use the "
      "command of `alpheus` of this name, which needs the cluster's key");
}

void AdminCalls::SetPrimary(const PrimaryReport& report, v1::Primary* out) {
  out->set_node(report.node);
  out->set_address(logs_.AddressOf(report.node));
  out->set_epoch(report.epoch.value);
}

ServerUnaryReactor* AdminCalls::Elect(grpc::CallbackServerContext* context,
                                      const v1::ElectRequest* request,
                                      v1::ElectResponse* response) {
  return Begin(
      *context, Method::kElect, request->log(), kElectTimes,
      [=, this](Administrator& administrator,
                const OrderBounds& bounds) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(
            const PrimaryReport elected,
            administrator.Elect(
                request->log(),
                request->node() == 0 ? administrator.node() : request->node(),
                bounds));
        SetPrimary(elected, response->mutable_primary());
        return absl::OkStatus();
      });
}

ServerUnaryReactor* AdminCalls::Drain(grpc::CallbackServerContext* context,
                                      const v1::DrainRequest* request,
                                      v1::DrainResponse* response) {
  return Begin(
      *context, Method::kDrain, request->log(), kElectTimes,
      [=, this](Administrator& administrator,
                const OrderBounds& bounds) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(
            const PrimaryReport next,
            administrator.Drain(
                request->log(),
                request->node() == 0 ? administrator.node() : request->node(),
                bounds));
        SetPrimary(next, response->mutable_primary());
        return absl::OkStatus();
      });
}

ServerUnaryReactor* AdminCalls::Scrub(grpc::CallbackServerContext* context,
                                      const v1::ScrubRequest* request,
                                      v1::ScrubResponse* response) {
  return Begin(
      *context, Method::kScrub, request->log(), kScrubTimes,
      [=](Administrator& administrator,
          const OrderBounds& bounds) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(
            const std::vector<ScrubResult> scrubs,
            administrator.Scrub(request->log(), request->node(), bounds));
        SetScrubs(scrubs, response);
        return absl::OkStatus();
      });
}

ServerUnaryReactor* AdminCalls::Replace(grpc::CallbackServerContext* context,
                                        const v1::ReplaceRequest* request,
                                        v1::ReplaceResponse* response) {
  return Begin(
      *context, Method::kReplace, request->log(), kChangeTimes,
      [=](Administrator& administrator,
          const OrderBounds& bounds) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(
            const RecoveryReport report,
            administrator.Replace(
                request->log(),
                {request->nodes().begin(), request->nodes().end()}, bounds));
        SetMembers(report, response->mutable_members());
        return absl::OkStatus();
      });
}

ServerUnaryReactor* AdminCalls::Reconfigure(
    grpc::CallbackServerContext* context, const v1::ReconfigureRequest* request,
    v1::ReconfigureResponse* response) {
  return Begin(*context, Method::kReconfigure, request->log(), kChangeTimes,
               [=](Administrator& administrator,
                   const OrderBounds& bounds) -> absl::Status {
                 ALPHEUS_ASSIGN_OR_RETURN(
                     const RecoveryReport report,
                     administrator.Reconfigure(
                         request->log(), request->cluster_file(), bounds));
                 SetMembers(report, response->mutable_members());
                 return absl::OkStatus();
               });
}

ServerUnaryReactor* AdminCalls::CreateLog(grpc::CallbackServerContext* context,
                                          const v1::CreateLogRequest* request,
                                          v1::CreateLogResponse* response) {
  const uint64_t bytes = request->region_bytes() == 0
                             ? FormatOptions().region_bytes
                             : request->region_bytes();
  return Begin(*context, Method::kCreateLog, request->log(), kCreateTimes,
               [=](Administrator& administrator,
                   const OrderBounds& bounds) -> absl::Status {
                 ALPHEUS_ASSIGN_OR_RETURN(
                     const Uuid id,
                     administrator.CreateLog(request->log(), bytes, bounds));
                 response->set_log_id(id.ToString());
                 return absl::OkStatus();
               });
}

grpc::ServerWriteReactor<v1::BackupResponse>* AdminCalls::Backup(
    grpc::CallbackServerContext* context, const v1::BackupRequest* request) {
  const Shown shown = ShownIn(*context, access_);
  BackupStream::Permits permits = {Permit(access_, shown, Role::kAdmin),
                                   Permit(access_, shown, Role::kRead)};
  absl::Status may = permits.order.Enter(request->log());
  if (may.ok()) may = permits.read.Enter(request->log());
  if (!may.ok()) {
    return BackupStream::Refuse(counts_, std::move(permits), NotAllowed(may));
  }
  const absl::Status takes = TakesOrders();
  if (!takes.ok()) {
    return BackupStream::Refuse(counts_, std::move(permits),
                                ErrorOfOrder(takes));
  }
  return BackupStream::Start(logs_, counts_, std::move(permits), *request);
}

ServerUnaryReactor* AdminCalls::DeleteLog(grpc::CallbackServerContext* context,
                                          const v1::DeleteLogRequest* request,
                                          v1::DeleteLogResponse* response) {
  return Begin(*context, Method::kDeleteLog, request->log(), kChangeTimes,
               [=](Administrator& administrator,
                   const OrderBounds& bounds) -> absl::Status {
                 ALPHEUS_ASSIGN_OR_RETURN(
                     const DeletedLog deleted,
                     administrator.DeleteLog(request->log(), bounds));
                 SetDeleted(deleted, response);
                 return absl::OkStatus();
               });
}

}  // namespace alpheus::rpc
