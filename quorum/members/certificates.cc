// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/base/wall_clock.h"
#include "quorum/members/libcrypto_errors.h"

namespace alpheus::quorum {
namespace {

using Bio = std::unique_ptr<BIO, int (*)(BIO*)>;

// Seconds since 1970 that never come, and that were always over.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kLongAgo = std::numeric_limits<int64_t>::min();

Bio ReadFrom(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
          BIO_free};
}

// A passphrase is never asked for.
int NoPassphrase(char* /*text*/, int /*size*/, int /*use*/, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

// Returns seconds since 1970; `if_none` for what is no time.
int64_t SecondsOf(const ASN1_TIME* time, int64_t if_none) {
  const std::unique_ptr<ASN1_TIME, void (*)(ASN1_TIME*)> begin(
      ASN1_TIME_set(nullptr, 0), ASN1_TIME_free);
  int days = 0;
  int seconds = 0;
  if (time == nullptr || begin == nullptr ||
      ASN1_TIME_diff(&days, &seconds, begin.get(), time) != 1) {
    return if_none;
  }
  return int64_t{days} * 86'400 + seconds;
}

absl::Status CheckIsGoodNow(const X509* certificate, const std::string& name,
                            int64_t now_s) {
  return CheckIsGood(ValidityOf(certificate), now_s,
                     absl::StrCat(name, ": the certificate of \"",
                                  SubjectOf(certificate), "\""),
                     "Have a new one made");
}

}  // namespace

void Validity::Narrow(const Validity& other) {
  begin_s = std::max(begin_s, other.begin_s);
  end_s = std::min(end_s, other.end_s);
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(
    const NamedText& file) {
  const ErrorsOfThread errors;
  const Bio bio = ReadFrom(file.text);
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
      is_at_end ? "no certificate"
                : absl::StrCat("certificate ", found.size() + 1,
                               " is cut off or damaged"),
      ". Expected PEM: BEGIN CERTIFICATE, base64, END CERTIFICATE"));
}

absl::StatusOr<PrivateKey> ReadKeyOf(const X509* owner,
                                     absl::string_view chain_name,
                                     const NamedText& file) {
  const ErrorsOfThread errors;
  const Bio bio = ReadFrom(file.text);
  bool was_asked = false;
  PrivateKey key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, &was_asked),
      EVP_PKEY_free);
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name, was_asked
                       ? ": the key has a passphrase, and nobody would be "
                         "there to give it. `openssl pkey -in FILE -out NEW` "
                         "takes it away"
                       : ": no private key. Expected PEM: BEGIN PRIVATE KEY, "
                         "base64, END PRIVATE KEY"));
  }
  if (X509_check_private_key(owner, key.get()) == 1) return key;
  return absl::InvalidArgumentError(absl::StrCat(
      file.name, ": this is the key of another certificate than that of \"",
      SubjectOf(owner), "\", the first in ", chain_name,
      ". Put both in place, the certificate of the node first in its file"));
}

std::string SubjectOf(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

Validity ValidityOf(const X509* certificate) {
  return {SecondsOf(X509_get0_notBefore(certificate), kNever),
          SecondsOf(X509_get0_notAfter(certificate), kLongAgo)};
}

Validity ValidityOf(const X509_CRL* list) {
  return {SecondsOf(X509_CRL_get0_lastUpdate(list), kNever),
          SecondsOf(X509_CRL_get0_nextUpdate(list), kNever)};
}

absl::Status CheckIsGood(const Validity& validity, int64_t now_s,
                         absl::string_view what, absl::string_view remedy) {
  if (now_s >= validity.end_s) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, " has expired at ", UtcText(validity.end_s), ". ", remedy));
  }
  if (now_s < validity.begin_s) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " is not good before ", UtcText(validity.begin_s),
                     ". Does this machine's clock go right?"));
  }
  return absl::OkStatus();
}

absl::Status CheckCertificate(const NamedText& chain, const NamedText& key,
                              int64_t now_s) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<Certificate> certificates,
                           ReadCertificates(chain));
  ALPHEUS_RETURN_IF_ERROR(
      ReadKeyOf(certificates.front().get(), chain.name, key).status());
  for (const Certificate& certificate : certificates) {
    ALPHEUS_RETURN_IF_ERROR(
        CheckIsGoodNow(certificate.get(), chain.name, now_s));
  }
  return absl::OkStatus();
}

absl::Status CheckAuthorities(const NamedText& authorities, int64_t now_s) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<Certificate> certificates,
                           ReadCertificates(authorities));
  // An old one may stay beside its successor.
  absl::Status why;
  for (const Certificate& certificate : certificates) {
    const absl::Status good =
        CheckIsGoodNow(certificate.get(), authorities.name, now_s);
    if (good.ok()) return absl::OkStatus();
    why = good;
  }
  return why;
}

}  // namespace alpheus::quorum
