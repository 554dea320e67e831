// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/server/log_server.h"

#include <grpc/support/time.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/grpc/access/access.h"
#include "api/grpc/access/token_file.h"
#include "api/grpc/calls/log_calls.h"
#include "api/grpc/server/reflection.h"
#include "api/grpc/server/tls.h"
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

TlsFiles FilesOf(const LogServerOptions& options) {
  return {options.tls_certificate, options.tls_key, options.tls_client_ca};
}

bool HasTls(const LogServerOptions& options) {
  return !options.tls_certificate.empty();
}

absl::Status CheckTogether(const LogServerOptions& options) {
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

// Returns the number and the port to listen on. Port 0 is no address, but may
// be listened on.
absl::StatusOr<std::string> AddressOf(const LogServerOptions& options) {
  std::string text = options.listen;
  const bool is_any_port = text.ends_with(":0");
  if (is_any_port) text.back() = '1';
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::Address address,
                           quorum::ParseAddress(text));
  ALPHEUS_ASSIGN_OR_RETURN(quorum::ResolvedAddress resolved,
                           quorum::ResolveAddress(address, quorum::LookUpHost));
  if (!resolved.is_loopback) ALPHEUS_RETURN_IF_ERROR(CheckReach(options));
  text = resolved.address.ToString();
  if (is_any_port) text.back() = '0';
  return text;
}

// All that a server is made of.
struct Parts {
  std::string address;
  std::optional<TlsTexts> tls;
  std::optional<std::vector<TokenEntry>> tokens;
};

absl::StatusOr<Parts> LoadParts(const LogServerOptions& options,
                                const WallClock& clock) {
  Parts parts;
  ALPHEUS_RETURN_IF_ERROR(CheckTogether(options));
  ALPHEUS_ASSIGN_OR_RETURN(parts.address, AddressOf(options));
  if (HasTls(options)) {
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
                service::ServedLogs& logs, const WallClock& clock)
      : options_(std::move(options)),
        clock_(clock),
        logs_(logs),
        access_(std::move(parts.tokens), clock),
        calls_(logs, tasks_, access_) {
    if (parts.tls) tls_.emplace(*std::move(parts.tls));
  }
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
    builder.AddListeningPort(
        address, tls_ ? tls_->Credentials() : grpc::InsecureServerCredentials(),
        &port);
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
          ": another process has the port, or this machine lacks the address",
          tls_ ? ", or OpenSSL refuses the certificate, as one with a short key"
               : ""));
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

  absl::Status Reload() override {
    const absl::Status tls = tls_ ? ReloadTls() : absl::OkStatus();
    const absl::Status tokens =
        access_.asks_for_tokens() ? ReloadTokens() : absl::OkStatus();
    if (tls.ok()) return tokens;
    if (tokens.ok()) return tls;
    return {tls.code(), absl::StrCat(tls.message(), "; ", tokens.message())};
  }

  const std::string& address() const override { return address_; }

 private:
  absl::Status ReloadTls() {
    absl::StatusOr<TlsTexts> texts =
        LoadTls(FilesOf(options_), clock_.NowSeconds());
    if (!texts.ok()) {
      return {texts.status().code(),
              absl::StrCat("the certificate of before is kept: ",
                           texts.status().message())};
    }
    tls_->Replace(*std::move(texts));
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
  const WallClock& clock_;
  service::ServedLogs& logs_;
  TaskThread tasks_;
  Access access_;
  std::optional<RotatingTls> tls_;
  LogCalls calls_;
  Reflection reflection_{
      std::vector<std::string>{v1::LogService::service_full_name()}, access_};
  std::string address_;
  bool is_watching_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::Status LogServer::Check(const LogServerOptions& options,
                              const WallClock& clock) {
  return LoadParts(options, clock).status();
}

absl::StatusOr<std::unique_ptr<LogServer>> LogServer::Start(
    const LogServerOptions& options, service::ServedLogs& logs,
    const WallClock& clock) {
  ALPHEUS_ASSIGN_OR_RETURN(Parts parts, LoadParts(options, clock));
  const std::string address = parts.address;
  auto server =
      std::make_unique<GrpcLogServer>(options, std::move(parts), logs, clock);
  ALPHEUS_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<LogServer>(std::move(server));
}

}  // namespace alpheus::rpc
