// SPDX-License-Identifier: Apache-2.0
// certificates: certificates and their keys as PEM, and until when they are
// good.
//
// Idea: nodes show certificates to each other, and a server to its clients.
// libssl and gRPC take texts that are of no use, and say so only at a peer's
// handshake. So both have everything read and judged here before.
//
// Thread safety: pure functions. The thread keeps no error of libcrypto, where
// others would find it.
// References: RFC 5280 (certificates), RFC 7468 (PEM).
#ifndef ALPHEUS_QUORUM_MEMBERS_CERTIFICATES_H_
#define ALPHEUS_QUORUM_MEMBERS_CERTIFICATES_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A certificate, a list of revoked ones and a key of libcrypto.
struct x509_st;
struct X509_crl_st;
struct evp_pkey_st;

namespace alpheus::quorum {

// Text of a file.
struct NamedText {
  std::string name;  // as errors call it
  std::string text;
};

// When certificates or lists are good, in seconds since 1970: from begin_s on,
// and no more at end_s.
struct Validity {
  int64_t begin_s = std::numeric_limits<int64_t>::min();
  int64_t end_s = std::numeric_limits<int64_t>::max();

  // The other must be good, too.
  void Narrow(const Validity& other);
};

using Certificate = std::unique_ptr<x509_st, void (*)(x509_st*)>;
using PrivateKey = std::unique_ptr<evp_pkey_st, void (*)(evp_pkey_st*)>;

// Returns all certificates of a text, at least one. Errors: InvalidArgument (no
// certificate, or one that is cut off).
absl::StatusOr<std::vector<Certificate>> ReadCertificates(
    const NamedText& file);
// Returns the key of a certificate. `owner`: the first one in `chain_name`.
// Errors: InvalidArgument (no key; one with a passphrase, which nobody would be
// there to give; one of another certificate).
absl::StatusOr<PrivateKey> ReadKeyOf(const x509_st* owner,
                                     absl::string_view chain_name,
                                     const NamedText& file);

// Returns its subject, as RFC 2253 writes it: "CN=node".
std::string SubjectOf(const x509_st* certificate);
Validity ValidityOf(const x509_st* certificate);
// Without an end a list is good for ever.
Validity ValidityOf(const X509_crl_st* list);
// Returns OK if it is good at `now_s`, seconds since 1970. `what` names it, and
// `remedy` is a sentence for one that has expired. Errors: FailedPrecondition.
absl::Status CheckIsGood(const Validity& validity, int64_t now_s,
                         absl::string_view what, absl::string_view remedy);

// Checks a certificate, with those of its issuers behind it, and its key, all
// as PEM. `now_s`: seconds since 1970. Errors: as ReadCertificates and
// ReadKeyOf; FailedPrecondition (one of them is not good now).
absl::Status CheckCertificate(const NamedText& chain, const NamedText& key,
                              int64_t now_s);
// Checks the certificates of authorities, as PEM. Errors: as ReadCertificates;
// FailedPrecondition (none of them is good now).
absl::Status CheckAuthorities(const NamedText& authorities, int64_t now_s);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_CERTIFICATES_H_
