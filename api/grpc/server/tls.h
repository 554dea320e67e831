// SPDX-License-Identifier: Apache-2.0
// tls: the server's certificate and key, which are replaced while it serves.
//
// Idea: gRPC asks at each handshake whether there is a new certificate, and
// keeps the one before if that is of no use. What it is given was checked
// before (certificates.h). gRPC's own watcher of files is not used: a
// certificate without its key would end all handshakes until both are there.
//
// Invariants:
//   CTS1. A handshake uses a certificate and the key that fits it, of one
//         Load.
//   CTS2. With authorities, a client that shows no certificate of theirs ends
//         at its handshake.
// Connections stay when the certificate is replaced. TLS is 1.2 or 1.3.
// Thread safety: all members by many threads.
// References: grpc/grpc_security.h (certificate config fetcher).
#ifndef ALPHEUS_API_GRPC_SERVER_TLS_H_
#define ALPHEUS_API_GRPC_SERVER_TLS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "log/base/mutex.h"
#include "log/pmem/config_file.h"

namespace alpheus::rpc {

// Files with PEM.
struct TlsFiles {
  std::string certificate;  // and those of its issuers; empty: no TLS
  std::string key;
  std::string client_ca;  // authorities of clients' certificates; empty: none
                          // is asked for
};

// Their texts.
struct TlsTexts {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

// Returns what changes when one of the files does (config_file.h).
std::vector<ConfigFileStamp> StampsOf(const TlsFiles& files);

// Reads and checks the files. Requires: there is a certificate. Errors: as
// ReadConfigFile, CheckCertificate and CheckAuthorities.
absl::StatusOr<TlsTexts> LoadTls(const TlsFiles& files, int64_t now_s);

class RotatingTls {
 public:
  // `before_handshake` is called before each one, and may call Replace.
  RotatingTls(TlsTexts texts, std::function<void()> before_handshake)
      : asks_clients_(!texts.client_ca.empty()),
        before_handshake_(std::move(before_handshake)),
        texts_(std::move(texts)) {}

  // The next handshakes use these. Requires: they have authorities if the first
  // ones had.
  void Replace(TlsTexts texts);
  // Returns credentials that use what this object has. It must outlive them and
  // their server.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

 private:
  // gRPC's callback; `self` is this object.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  const bool asks_clients_;
  const std::function<void()> before_handshake_;
  Mutex mutex_;
  TlsTexts texts_ ABSL_GUARDED_BY(mutex_);
  bool is_fetched_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_SERVER_TLS_H_
