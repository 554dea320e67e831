// SPDX-License-Identifier: Apache-2.0
// crypto: what the service asks of libcrypto: digests of tokens, and whether
// certificates are good.
//
// Idea: gRPC takes any text for a certificate, and says only at a client's
// handshake that it is of no use. So everything is looked at before.
//
// Thread safety: pure functions.
// References: FIPS 180-4 (SHA-256), RFC 5280 (certificates), RFC 7468 (PEM).
#ifndef ALPHEUS_API_GRPC_ACCESS_CRYPTO_H_
#define ALPHEUS_API_GRPC_ACCESS_CRYPTO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "quorum/members/cluster_key.h"

namespace alpheus::rpc {

quorum::Digest Sha256(std::string_view text);

// The same of a text that comes in parts. One thread.
class Sha256OfParts {
 public:
  Sha256OfParts();
  ~Sha256OfParts();
  Sha256OfParts(const Sha256OfParts&) = delete;
  Sha256OfParts& operator=(const Sha256OfParts&) = delete;

  void Add(std::string_view part);
  // Returns the digest of all parts. Called once, last.
  quorum::Digest Finish();

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

// Text of a file.
struct NamedText {
  std::string name;  // as errors call it
  std::string text;
};

// Checks a certificate, with those of its issuers behind it, and its key, all
// as PEM. `now_s`: seconds since 1970. Errors: InvalidArgument (no such text,
// or cut off; a key with a passphrase, or of another certificate);
// FailedPrecondition (a certificate has expired, or is not valid yet).
absl::Status CheckCertificate(const NamedText& chain, const NamedText& key,
                              int64_t now_s);
// Checks the certificates of authorities, as PEM. Errors: InvalidArgument (no
// such text, or cut off); FailedPrecondition (none of them is valid now).
absl::Status CheckAuthorities(const NamedText& authorities, int64_t now_s);

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_ACCESS_CRYPTO_H_
