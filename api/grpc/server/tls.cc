// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/server/tls.h"

#include <grpc/grpc.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "quorum/members/certificates.h"

namespace alpheus::rpc {
namespace {

using quorum::NamedText;

// No list of authorities is larger.
constexpr size_t kPemBytesMax = size_t{4} << 20;

absl::StatusOr<NamedText> ReadNamed(const std::string& path,
                                    absl::string_view what,
                                    ReadableBy readers) {
  ALPHEUS_ASSIGN_OR_RETURN(
      std::string text,
      ReadConfigFile(path, {.name = what,
                            .bytes_max = kPemBytesMax,
                            .readers = readers,
                            .if_exposed = "make a new one, and a certificate "
                                          "for it"}));
  return NamedText{absl::StrCat(what, " ", path), std::move(text)};
}

// gRPC has these credentials in C only.
class FetchingCredentials final : public grpc::ServerCredentials {
 public:
  // Takes `credentials`.
  explicit FetchingCredentials(grpc_server_credentials* credentials)
      : credentials_(credentials) {}
  ~FetchingCredentials() override {
    grpc_server_credentials_release(credentials_);
  }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override {
    ALPHEUS_CHECK(processor == nullptr, "calls are judged by Access");
  }

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

}  // namespace

std::vector<ConfigFileStamp> StampsOf(const TlsFiles& files) {
  return {StampOf(files.certificate), StampOf(files.key),
          StampOf(files.client_ca)};
}

absl::StatusOr<TlsTexts> LoadTls(const TlsFiles& files, int64_t now_s) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const NamedText certificate,
      ReadNamed(files.certificate, "certificate file", ReadableBy::kAnyone));
  ALPHEUS_ASSIGN_OR_RETURN(const NamedText key, ReadNamed(files.key, "key file",
                                                          ReadableBy::kOwner));
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckCertificate(certificate, key, now_s));
  if (files.client_ca.empty()) return TlsTexts{certificate.text, key.text, {}};
  ALPHEUS_ASSIGN_OR_RETURN(
      const NamedText authorities,
      ReadNamed(files.client_ca, "file of authorities", ReadableBy::kAnyone));
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckAuthorities(authorities, now_s));
  return TlsTexts{certificate.text, key.text, authorities.text};
}

void RotatingTls::Replace(TlsTexts texts) {
  ALPHEUS_CHECK(texts.client_ca.empty() != asks_clients_,
                "clients are asked for certificates as before");
  const MutexLock lock(mutex_);
  texts_ = std::move(texts);
  is_fetched_ = false;
}

std::shared_ptr<grpc::ServerCredentials> RotatingTls::Credentials() {
  auto request = GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  if (asks_clients_) {
    request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return std::make_shared<FetchingCredentials>(
      grpc_ssl_server_credentials_create_with_options(
          grpc_ssl_server_credentials_create_options_using_config_fetcher(
              request, &RotatingTls::Fetch, this)));
}

grpc_ssl_certificate_config_reload_status RotatingTls::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto& tls = *static_cast<RotatingTls*>(self);
  tls.before_handshake_();
  const MutexLock lock(tls.mutex_);
  if (std::exchange(tls.is_fetched_, true)) {
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  }
  const grpc_ssl_pem_key_cert_pair pair = {tls.texts_.key.c_str(),
                                           tls.texts_.certificate.c_str()};
  // gRPC wants some, also where no client is asked for a certificate; then
  // nothing is judged by them.
  const std::string& authorities =
      tls.asks_clients_ ? tls.texts_.client_ca : tls.texts_.certificate;
  *config =
      grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace alpheus::rpc
