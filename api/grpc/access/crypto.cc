// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/crypto.h"

#include <openssl/evp.h>

#include <memory>

#include "log/base/check.h"

namespace alpheus::rpc {

quorum::Digest Sha256(std::string_view text) {
  quorum::Digest digest{};
  unsigned int bytes = 0;
  const int done = EVP_Digest(text.data(), text.size(),
                              reinterpret_cast<unsigned char*>(digest.data()),
                              &bytes, EVP_sha256(), nullptr);
  // A failed digest would be the same for everybody.
  ALPHEUS_CHECK(done == 1 && bytes == digest.size(), "libcrypto has SHA-256");
  return digest;
}

struct Sha256OfParts::Context {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> digest{EVP_MD_CTX_new(),
                                                            EVP_MD_CTX_free};
};

Sha256OfParts::Sha256OfParts() : context_(std::make_unique<Context>()) {
  const int done =
      EVP_DigestInit_ex(context_->digest.get(), EVP_sha256(), nullptr);
  ALPHEUS_CHECK(done == 1, "libcrypto has SHA-256");
}

Sha256OfParts::~Sha256OfParts() = default;

void Sha256OfParts::Add(std::string_view part) {
  const int done =
      EVP_DigestUpdate(context_->digest.get(), part.data(), part.size());
  ALPHEUS_CHECK(done == 1, "libcrypto has SHA-256");
}

quorum::Digest Sha256OfParts::Finish() {
  quorum::Digest digest{};
  unsigned int bytes = 0;
  const int done = EVP_DigestFinal_ex(
      context_->digest.get(), reinterpret_cast<unsigned char*>(digest.data()),
      &bytes);
  ALPHEUS_CHECK(done == 1 && bytes == digest.size(), "libcrypto has SHA-256");
  return digest;
}

}  // namespace alpheus::rpc
