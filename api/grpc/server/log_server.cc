// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/server/log_server.h"

#include <grpc/support/time.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "api/grpc/access/access.h"
#include "api/grpc/access/token_file.h"
#include "api/grpc/calls/admin_calls.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/log_calls.h"
#include "api/grpc/connections/acceptor.h"
#include "api/grpc/server/reflection.h"
#include "api/grpc/server/tls.h"
#include "api/grpc/wire/messages.h"
#include "api/wiring/job_threads.h"
#include "api/wiring/listen_address.h"
#include "api/wiring/task_thread.h"
#include "log/base/mutex.h"
#include "log/base/status_macros.h"
#include "log/pmem/config_file.h"

namespace alpheus::rpc {
namespace {

// All connections together buffer so much; then gRPC reads more slowly.
constexpr size_t kBufferBytesMax = size_t{256} << 20;
// HTTP/2's window of a stream. A sender that has more under way waits, and so
// does one whose messages the server has not read (append_stream.h).
constexpr int kWindowBytes = 1 << 20;
constexpr int kStreamsMax = 4'096;  // of a connection
constexpr int kEndSeconds = 1;
// A connection that does not begin ends after so long, and one whose client
// does not answer pings any more, too: its machine is gone.
constexpr int kHandshakeMs = 10'000;
constexpr int kPingEveryMs = 60'000;
constexpr int kPingAnswerMs = 20'000;
// Orders of administrators that are carried out at once.
constexpr size_t kOrdersMax = 4;

TlsFiles FilesOf(const LogServerOptions& options) {
  return {options.tls_certificate, options.tls_key, options.tls_client_ca};
}

bool HasTls(const LogServerOptions& options) {
  return !options.tls_certificate.empty();
}

absl::Status CheckTogether(const LogServerOptions& options) {
  const ConnectionLimitOptions& connections = options.connections;
  if (connections.open_max == 0 || connections.of_host_max == 0 ||
      connections.per_second == 0) {
    return absl::InvalidArgumentError(
        "a limit of 0 connections lets nobody in. Give 1 or more");
  }
  if (HasTls(options) != !options.tls_key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(HasTls(options) ? "a certificate without its key"
                                     : "a key without its certificate",
                     ": give both, --tls-certificate and --tls-key"));
  }
  if (!HasTls(options) && !options.tls_client_ca.empty()) {
    return absl::InvalidArgumentError(
        "--tls-client-ca without TLS: nobody would be asked for a certificate. "
        "Give --tls-certificate and --tls-key, too");
  }
  return absl::OkStatus();
}

// Checks LSV1.
absl::Status CheckReach(const LogServerOptions& options) {
  const bool knows_clients =
      !options.tokens.empty() || !options.tls_client_ca.empty();
  if (HasTls(options) && knows_clients) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options.listen, " is not of this machine alone: ",
      HasTls(options) ? "anybody there could read and write the logs. Give "
                        "--tokens, or --tls-client-ca"
                      : "without TLS anybody on the way could read and write "
                        "the logs. Give --tls-certificate and --tls-key, and "
                        "--tokens or --tls-client-ca",
      "; or listen on 127.0.0.1"));
}

absl::StatusOr<std::string> AddressOf(const LogServerOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const ListenAddress resolved,
                           ResolveListenAddress(options.listen));
  if (!resolved.is_loopback) ALPHEUS_RETURN_IF_ERROR(CheckReach(options));
  return resolved.text;
}

// All that a server is made of.
struct Parts {
  std::string address;
  std::vector<ConfigFileStamp> tls_stamps;
  std::optional<TlsTexts> tls;
  std::optional<std::vector<TokenEntry>> tokens;
};

absl::StatusOr<Parts> LoadParts(const LogServerOptions& options,
                                const WallClock& clock) {
  Parts parts;
  ALPHEUS_RETURN_IF_ERROR(CheckTogether(options));
  ALPHEUS_ASSIGN_OR_RETURN(parts.address, AddressOf(options));
  if (HasTls(options)) {
    parts.tls_stamps = StampsOf(FilesOf(options));
    ALPHEUS_ASSIGN_OR_RETURN(parts.tls,
                             LoadTls(FilesOf(options), clock.NowSeconds()));
  }
  if (!options.tokens.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(parts.tokens, LoadTokenFile(options.tokens));
  }
  return parts;
}

class GrpcLogServer final : public LogServer {
 public:
  GrpcLogServer(LogServerOptions options, Parts parts,
                service::ServedLogs& logs, Acceptor::Say say,
                const WallClock& clock, Administrator* administrator)
      : options_(std::move(options)),
        say_(std::move(say)),
        clock_(clock),
        logs_(logs),
        access_(std::move(parts.tokens), clock),
        calls_(logs, tasks_, access_, counts_),
        admin_calls_(logs, jobs_, access_, counts_, administrator) {
    if (!parts.tls) return;
    tls_stamps_ = std::move(parts.tls_stamps);
    looked_at_s_ = clock_.NowSeconds();
    tls_.emplace(*std::move(parts.tls), [this] { LookAtTls(); });
  }
  ~GrpcLogServer() override {
    if (is_watching_) logs_.Watch({});
    acceptor_.reset();
    // A time span, counted from now on.
    if (server_) {
      server_->Shutdown(gpr_time_from_seconds(kEndSeconds, GPR_TIMESPAN));
    }
  }

  absl::Status Listen(const std::string& address) {
    ALPHEUS_RETURN_IF_ERROR(tasks_.Start());
    ALPHEUS_ASSIGN_OR_RETURN(
        acceptor_, Acceptor::Listen(address, options_.connections, say_));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        tls_ ? tls_->Credentials() : grpc::InsecureServerCredentials());
    builder.RegisterService(&calls_);
    builder.RegisterService(&admin_calls_);
    builder.RegisterCallbackGenericService(&reflection_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMessageBytesMax));
    builder.SetResourceQuota(
        grpc::ResourceQuota("clients").Resize(kBufferBytesMax));
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                               kWindowBytes);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(absl::StrCat(
          "gRPC can't serve clients on ", address,
          tls_ ? ": OpenSSL refuses the certificate, as one with a short key"
               : ""));
    }
    grpc::HealthCheckServiceInterface* const health =
        server_->GetHealthCheckService();
    is_watching_ = true;
    logs_.Watch([health](const std::string& log, bool is_served) {
      for (const char* use : {"append", "tail"}) {
        health->SetServingStatus(absl::StrCat("alpheus/", log, "/", use),
                                 is_served);
      }
    });
    return acceptor_->Start([this](int descriptor) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
          connection;
      connection.fd = descriptor;
      connections_->HandleNewConnection(&connection);
    });
  }

  absl::Status Reload() override {
    absl::Status tls;
    if (tls_) {
      const MutexLock lock(look_mutex_);
      tls = ReloadTls();
    }
    absl::Status tokens;
    if (access_.asks_for_tokens()) tokens = ReloadTokens();
    if (tls.ok()) return tokens;
    if (tokens.ok()) return tls;
    return {tls.code(), absl::StrCat(tls.message(), "; ", tokens.message())};
  }

  const std::string& address() const override { return acceptor_->address(); }
  const CallCounts& counts() const override { return counts_; }
  ConnectionCounts connections() const override {
    return {acceptor_->open(), acceptor_->refused()};
  }

 private:
  // LSV3. Called by gRPC, before each handshake.
  void LookAtTls() {
    const MutexLock lock(look_mutex_);
    const int64_t now_s = clock_.NowSeconds();
    if (std::exchange(looked_at_s_, now_s) == now_s) return;
    if (StampsOf(FilesOf(options_)) == tls_stamps_) return;
    const absl::Status reloaded = ReloadTls();
    std::string said(reloaded.ok() ? "the certificate was replaced, and is used"
                                   : reloaded.message());
    const bool is_new = said != tls_said_;
    tls_said_ = reloaded.ok() ? "" : said;
    if (is_new && say_) say_(absl::StrCat("clients' TLS: ", said));
  }
  absl::Status ReloadTls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(look_mutex_) {
    std::vector<ConfigFileStamp> stamps = StampsOf(FilesOf(options_));
    absl::StatusOr<TlsTexts> texts =
        LoadTls(FilesOf(options_), clock_.NowSeconds());
    if (!texts.ok()) {
      return {texts.status().code(),
              absl::StrCat("the certificate of before is kept: ",
                           texts.status().message())};
    }
    tls_->Replace(*std::move(texts));
    tls_stamps_ = std::move(stamps);
    return absl::OkStatus();
  }
  absl::Status ReloadTokens() {
    absl::StatusOr<std::vector<TokenEntry>> tokens =
        LoadTokenFile(options_.tokens);
    if (!tokens.ok()) {
      return {tokens.status().code(),
              absl::StrCat("the tokens of before are kept: ",
                           tokens.status().message())};
    }
    access_.Replace(*std::move(tokens));
    return absl::OkStatus();
  }

  const LogServerOptions options_;
  const Acceptor::Say say_;
  const WallClock& clock_;
  service::ServedLogs& logs_;
  TaskThread tasks_;
  Access access_;
  Mutex look_mutex_;  // before that of tls_
  int64_t looked_at_s_ ABSL_GUARDED_BY(look_mutex_) = 0;
  // Stamps of the files that are used; and why later ones are not.
  std::vector<ConfigFileStamp> tls_stamps_ ABSL_GUARDED_BY(look_mutex_);
  std::string tls_said_ ABSL_GUARDED_BY(look_mutex_);
  std::optional<RotatingTls> tls_;
  CallCounts counts_;
  JobThreads jobs_{kOrdersMax};
  LogCalls calls_;
  AdminCalls admin_calls_;
  Reflection reflection_{
      std::vector<std::string>{v1::LogService::service_full_name(),
                               v1::AdminService::service_full_name()},
      access_};
  bool is_watching_ = false;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::Status LogServer::Check(const LogServerOptions& options,
                              const WallClock& clock) {
  return LoadParts(options, clock).status();
}

absl::StatusOr<std::unique_ptr<LogServer>> LogServer::Start(
    const LogServerOptions& options, service::ServedLogs& logs,
    std::function<void(const std::string&)> say, const WallClock& clock,
    Administrator* administrator) {
  ALPHEUS_ASSIGN_OR_RETURN(Parts parts, LoadParts(options, clock));
  const std::string address = parts.address;
  auto server = std::make_unique<GrpcLogServer>(
      options, std::move(parts), logs, std::move(say), clock, administrator);
  ALPHEUS_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<LogServer>(std::move(server));
}

}  // namespace alpheus::rpc
