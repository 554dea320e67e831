// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/crypto.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::rpc {
namespace {

using Bio = std::unique_ptr<BIO, int (*)(BIO*)>;
using Certificate = std::unique_ptr<X509, void (*)(X509*)>;
using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;

// Errors of libcrypto stay with the thread, where gRPC would find them.
class ErrorsOfThread {
 public:
  ErrorsOfThread() { ERR_clear_error(); }
  ~ErrorsOfThread() { ERR_clear_error(); }
  ErrorsOfThread(const ErrorsOfThread&) = delete;
  ErrorsOfThread& operator=(const ErrorsOfThread&) = delete;
};

Bio Open(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
          BIO_free};
}

// A passphrase is never asked for.
int NoPassphrase(char* /*text*/, int /*size*/, int /*use*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

// Returns all certificates of a file, at least one.
absl::StatusOr<std::vector<Certificate>> ReadCertificates(
    const NamedText& file) {
  const Bio bio = Open(file.text);
  std::vector<Certificate> found;
  bool was_asked = false;
  for (;;) {
    X509* const next =
        PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, &was_asked);
    if (next == nullptr) break;
    found.emplace_back(next, X509_free);
  }
  const bool is_at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!found.empty() && is_at_end) return found;
  return absl::InvalidArgumentError(absl::StrCat(
      file.name, ": ",
      found.empty() ? "no certificate"
                    : absl::StrCat("certificate ", found.size() + 1,
                                   " is cut off or damaged"),
      ". Expected PEM: BEGIN CERTIFICATE, base64, END CERTIFICATE"));
}

absl::StatusOr<Key> ReadKey(const NamedText& file) {
  const Bio bio = Open(file.text);
  bool was_asked = false;
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, &was_asked),
          EVP_PKEY_free);
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(absl::StrCat(
      file.name, was_asked
                     ? ": the key has a passphrase, and nobody would be there "
                       "to give it. `openssl pkey -in FILE -out NEW` takes it "
                       "away"
                     : ": no private key. Expected PEM: BEGIN PRIVATE KEY, "
                       "base64, END PRIVATE KEY"));
}

std::string TimeOf(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  ASN1_TIME_print(bio.get(), time);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

std::string SubjectOf(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

absl::Status CheckDates(const X509* certificate, const std::string& name,
                        int64_t now_s) {
  time_t now = now_s;
  const ASN1_TIME* const begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* const end = X509_get0_notAfter(certificate);
  // 0: it is no time.
  if (X509_cmp_time(end, &now) <= 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": the certificate of \"", SubjectOf(certificate),
        "\" has expired at ", TimeOf(end), ". Have a new one made"));
  }
  if (X509_cmp_time(begin, &now) >= 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": the certificate of \"", SubjectOf(certificate),
                     "\" is not valid before ", TimeOf(begin),
                     ". Does this machine's clock go right?"));
  }
  return absl::OkStatus();
}

}  // namespace

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

absl::Status CheckCertificate(const NamedText& chain, const NamedText& key,
                              int64_t now_s) {
  const ErrorsOfThread errors;
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<Certificate> certificates,
                           ReadCertificates(chain));
  ALPHEUS_ASSIGN_OR_RETURN(const Key private_key, ReadKey(key));
  if (X509_check_private_key(certificates.front().get(), private_key.get()) !=
      1) {
    return absl::InvalidArgumentError(absl::StrCat(
        key.name, ": this is the key of another certificate than that of \"",
        SubjectOf(certificates.front().get()), "\", the first in ", chain.name,
        ". Put both in place, the certificate of the node first in its file"));
  }
  for (const Certificate& certificate : certificates) {
    ALPHEUS_RETURN_IF_ERROR(CheckDates(certificate.get(), chain.name, now_s));
  }
  return absl::OkStatus();
}

absl::Status CheckAuthorities(const NamedText& authorities, int64_t now_s) {
  const ErrorsOfThread errors;
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<Certificate> certificates,
                           ReadCertificates(authorities));
  // An old one may stay beside its successor.
  absl::Status why;
  for (const Certificate& certificate : certificates) {
    const absl::Status dates =
        CheckDates(certificate.get(), authorities.name, now_s);
    if (dates.ok()) return absl::OkStatus();
    why = dates;
  }
  return why;
}

}  // namespace alpheus::rpc
