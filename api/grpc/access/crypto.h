// SPDX-License-Identifier: Apache-2.0
// crypto: what the service asks of libcrypto: digests.
//
// Thread safety: pure functions.
// References: FIPS 180-4 (SHA-256).
#ifndef ALPHEUS_API_GRPC_ACCESS_CRYPTO_H_
#define ALPHEUS_API_GRPC_ACCESS_CRYPTO_H_

#include <memory>
#include <string_view>

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

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_ACCESS_CRYPTO_H_
