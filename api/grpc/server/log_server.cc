// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/server/log_server.h"

#include <grpc/support/time.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/grpc/calls/log_calls.h"
#include "api/grpc/server/reflection.h"
#include "api/grpc/wire/messages.h"
#include "api/wiring/task_thread.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/host_numbers.h"
#include "quorum/members/address.h"

namespace alpheus::rpc {
namespace {

// All connections together buffer so much; then gRPC reads more slowly.
constexpr size_t kBufferBytesMax = size_t{256} << 20;
// HTTP/2's window of a stream. A sender that has more under way waits, and so
// does one whose messages the server has not read (append_stream.h).
constexpr int kWindowBytes = 1 << 20;
constexpr int kStreamsMax = 4'096;  // of a connection
constexpr int kEndSeconds = 1;

// Returns the number and the port to listen on. Port 0 is no address, but may
// be listened on.
absl::StatusOr<std::string> AddressOf(const std::string& listen) {
  std::string text = listen;
  const bool is_any_port = text.ends_with(":0");
  if (is_any_port) text.back() = '1';
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::Address address,
                           quorum::ParseAddress(text));
  ALPHEUS_ASSIGN_OR_RETURN(quorum::ResolvedAddress resolved,
                           quorum::ResolveAddress(address, quorum::LookUpHost));
  if (!resolved.is_loopback) {
    return absl::InvalidArgumentError(absl::StrCat(
        listen,
        " is not of this machine alone: the service has no TLS yet, so that "
        "anybody there could read and write the logs. Listen on 127.0.0.1, "
        "and let a proxy with TLS on this machine forward to it"));
  }
  text = resolved.address.ToString();
  if (is_any_port) text.back() = '0';
  return text;
}

class GrpcLogServer final : public LogServer {
 public:
  explicit GrpcLogServer(service::ServedLogs& logs)
      : logs_(logs), calls_(logs, tasks_) {}
  ~GrpcLogServer() override {
    if (is_watching_) logs_.Watch({});
    // A time span, counted from now on.
    if (server_) {
      server_->Shutdown(gpr_time_from_seconds(kEndSeconds, GPR_TIMESPAN));
    }
  }

  absl::Status Listen(const std::string& address) {
    ALPHEUS_RETURN_IF_ERROR(tasks_.Start());
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&calls_);
    builder.RegisterCallbackGenericService(&reflection_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMessageBytesMax));
    builder.SetResourceQuota(
        grpc::ResourceQuota("clients").Resize(kBufferBytesMax));
    // Another process on the port is an error.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                               kWindowBytes);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat(
          "can't listen for clients on ", address,
          ": another process has the port, or this machine lacks the address"));
    }
    const size_t end = address.rfind(':') + 1;
    address_ = absl::StrCat(address.substr(0, end), port);
    grpc::HealthCheckServiceInterface* const health =
        server_->GetHealthCheckService();
    is_watching_ = true;
    logs_.Watch([health](const std::string& log, bool is_served) {
      for (const char* use : {"append", "tail"}) {
        health->SetServingStatus(absl::StrCat("alpheus/", log, "/", use),
                                 is_served);
      }
    });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  service::ServedLogs& logs_;
  TaskThread tasks_;
  LogCalls calls_;
  Reflection reflection_{
      std::vector<std::string>{v1::LogService::service_full_name()}};
  std::string address_;
  bool is_watching_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::Status LogServer::Check(const std::string& listen) {
  return AddressOf(listen).status();
}

absl::StatusOr<std::unique_ptr<LogServer>> LogServer::Start(
    const std::string& listen, service::ServedLogs& logs) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string address, AddressOf(listen));
  auto server = std::make_unique<GrpcLogServer>(logs);
  ALPHEUS_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<LogServer>(std::move(server));
}

}  // namespace alpheus::rpc
