// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/tls.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "quorum/members/certificates.h"
#include "quorum/members/libcrypto_errors.h"
#include "replication/fabric/tcp/kernel_tls.h"

namespace alpheus::fabric::tcp {
namespace {

using Bio = std::unique_ptr<BIO, int (*)(BIO*)>;
using quorum::Certificate;
using quorum::ErrorsOfThread;

Bio Open(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
          BIO_free};
}

// A passphrase is never asked for: nobody would be there to give it.
int NoPassphrase(char* /*text*/, int /*size*/, int /*use*/, void* /*data*/) {
  return -1;
}

absl::Status IsOfNoUse(const std::string& name, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": ", ErrorsOfThread::Text(), ". Expected ", expected, ", as PEM"));
}

constexpr absl::string_view kListsExpected =
    "lists of revoked certificates (CRL), all of them whole";

// Reads all lists; there must be one, and all must be whole.
absl::StatusOr<std::vector<std::unique_ptr<X509_CRL, void (*)(X509_CRL*)>>>
ReadLists(const std::string& text, const std::string& name) {
  const Bio bio = Open(text);
  std::vector<std::unique_ptr<X509_CRL, void (*)(X509_CRL*)>> found;
  while (X509_CRL* const next =
             PEM_read_bio_X509_CRL(bio.get(), nullptr, NoPassphrase, nullptr)) {
    found.emplace_back(next, X509_CRL_free);
  }
  const bool is_at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (found.empty() || !is_at_end) return IsOfNoUse(name, kListsExpected);
  ERR_clear_error();
  return found;
}

// FTL7. libssl calls it with each finding about a peer's certificates.
int ListsMayExpire(int is_good, X509_STORE_CTX* context) {
  const bool is_list_old =
      X509_STORE_CTX_get_error(context) == X509_V_ERR_CRL_HAS_EXPIRED;
  if (!is_list_old) return is_good;
  X509_STORE_CTX_set_error(context, X509_V_OK);
  return 1;
}

// Returns the one URI that a certificate names; nothing if there is none, or
// several.
std::optional<std::string> UriIn(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
          certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::optional<std::string> uri;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    if (uri) return std::nullopt;
    const ASN1_IA5STRING* const text = name->d.uniformResourceIdentifier;
    uri.emplace(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return uri;
}

// Computes bytes of a key from a secret (RFC 8446, 7.3). Returns false where
// memory runs out.
bool ExpandLabel(std::span<const unsigned char> secret, const char* label,
                 std::span<unsigned char> into) {
  const std::unique_ptr<EVP_KDF, void (*)(EVP_KDF*)> function(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_TLS1_3_KDF, nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, void (*)(EVP_KDF_CTX*)> context(
      EVP_KDF_CTX_new(function.get()), EVP_KDF_CTX_free);
  if (context == nullptr) return false;
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  // The interface takes what it only reads as if it might write.
  const auto text = [](const char* name, const void* bytes, size_t count) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(bytes),
                                             count);
  };
  constexpr std::string_view kPrefix = "tls13 ";
  char digest[] = "SHA256";
  const std::array<OSSL_PARAM, 6> parameters = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      text(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      text(OSSL_KDF_PARAM_PREFIX, kPrefix.data(), kPrefix.size()),
      text(OSSL_KDF_PARAM_LABEL, label, std::string_view(label).size()),
      OSSL_PARAM_construct_end()};
  return EVP_KDF_derive(context.get(), into.data(), into.size(),
                        parameters.data()) == 1;
}

std::optional<KernelTlsKey> KeyOf(std::span<const unsigned char> secret) {
  KernelTlsKey key;
  if (secret.empty() || !ExpandLabel(secret, "key", key.key) ||
      !ExpandLabel(secret, "iv", key.iv)) {
    return std::nullopt;
  }
  return key;
}

// Sets the rest, which no file says.
bool Configure(SSL_CTX* context) {
  // Nothing is resumed: each session proves both certificates.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  return SSL_CTX_set_num_tickets(context, 0) == 1 &&
         SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(context, "TLS_CHACHA20_POLY1305_SHA256") == 1;
}

}  // namespace

// --- Settings ---------------------------------------------------------------

TlsSettings::TlsSettings(Context context) : context_(std::move(context)) {}

absl::StatusOr<std::shared_ptr<const TlsSettings>> TlsSettings::Make(
    const TlsTexts& texts) {
  const ErrorsOfThread errors;
  Context context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (context == nullptr || !Configure(context.get())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "libssl can't begin: ", ErrorsOfThread::Text(),
        ". Is it whole, and does its configuration allow TLS 1.3 with "
        "TLS_CHACHA20_POLY1305_SHA256? Is there memory?"));
  }
  SSL_CTX_set_keylog_callback(context.get(), TlsSession::TakeSecret);
  std::shared_ptr<TlsSettings> made(new TlsSettings(std::move(context)));
  ALPHEUS_RETURN_IF_ERROR(made->Trust(texts));
  ALPHEUS_RETURN_IF_ERROR(made->UseOwn(texts));
  return made;
}

absl::Status TlsSettings::UseOwn(const TlsTexts& texts) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::vector<Certificate> chain,
      quorum::ReadCertificates({texts.certificate_name, texts.certificate}));
  X509* const own = chain.front().get();
  std::optional<std::string> name = UriIn(own);
  if (!name) {
    return absl::InvalidArgumentError(absl::StrCat(
        texts.certificate_name,
        ": the certificate names nobody, or several: expected one URI among "
        "its subject alternative names. Have one made as "
        "docs/use/operating.md#encryption-between-nodes says"));
  }
  own_name_ = *std::move(name);
  SSL_CTX* const context = context_.get();
  if (SSL_CTX_use_certificate(context, own) != 1) {
    return IsOfNoUse(texts.certificate_name, "a certificate");
  }
  for (const Certificate& issuer : std::span(chain).subspan(1)) {
    // It takes a reference of its own.
    if (SSL_CTX_add1_chain_cert(context, issuer.get()) != 1) {
      return IsOfNoUse(texts.certificate_name, "certificates of the issuers");
    }
  }
  for (const Certificate& one : chain) {
    own_validity_.Narrow(quorum::ValidityOf(one.get()));
    is_own_revoked_ |= Revokes(one.get());
  }
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::PrivateKey key,
                           quorum::ReadKeyOf(own, texts.certificate_name,
                                             {texts.key_name, texts.key}));
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return IsOfNoUse(texts.key_name, "a key for TLS 1.3");
  }
  return absl::OkStatus();
}

absl::Status TlsSettings::Trust(const TlsTexts& texts) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::vector<Certificate> authorities,
      quorum::ReadCertificates({texts.authorities_name, texts.authorities}));
  X509_STORE* const store = SSL_CTX_get_cert_store(context_.get());
  for (const Certificate& authority : authorities) {
    if (X509_STORE_add_cert(store, authority.get()) != 1) {
      return IsOfNoUse(texts.authorities_name, "certificates of authorities");
    }
  }
  const int proofs = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(context_.get(), proofs, ListsMayExpire);
  if (!texts.revoked) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(UseLists(*texts.revoked, texts.revoked_name));
  for (const Certificate& authority : authorities) {
    ALPHEUS_RETURN_IF_ERROR(CheckHasList(authority.get(), texts));
  }
  return absl::OkStatus();
}

absl::Status TlsSettings::UseLists(const std::string& text,
                                   const std::string& name) {
  ALPHEUS_ASSIGN_OR_RETURN(lists_, ReadLists(text, name));
  X509_STORE* const store = SSL_CTX_get_cert_store(context_.get());
  for (const List& list : lists_) {
    if (X509_STORE_add_crl(store, list.get()) != 1) {
      return IsOfNoUse(name, kListsExpected);
    }
    revoked_validity_.Narrow(quorum::ValidityOf(list.get()));
  }
  // Lists are looked at for the peer, and for all its issuers.
  constexpr unsigned long kListsAreLookedAt =
      X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
  X509_STORE_set_flags(store, kListsAreLookedAt);
  return absl::OkStatus();
}

// FTL6.
absl::Status TlsSettings::CheckHasList(X509* authority,
                                       const TlsTexts& texts) const {
  const X509_NAME* const name = X509_get_subject_name(authority);
  size_t named = 0;
  size_t signed_by_it = 0;
  for (const List& list : lists_) {
    if (X509_NAME_cmp(X509_CRL_get_issuer(list.get()), name) != 0) continue;
    ++named;
    signed_by_it +=
        X509_CRL_verify(list.get(), X509_get0_pubkey(authority)) == 1 ? 1 : 0;
  }
  // libssl goes by the name alone when it looks for a list.
  if (named > 0 && named == signed_by_it) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      texts.revoked_name, ": ", named, " lists are of \"",
      quorum::SubjectOf(authority), "\", and it has signed ", signed_by_it,
      " of them. Expected one of each of the ", texts.authorities_name,
      ", which have names of their own; one that names nobody will do"));
}

bool TlsSettings::Revokes(X509* certificate) const {
  const X509_NAME* const issuer = X509_get_issuer_name(certificate);
  return std::ranges::any_of(lists_, [&](const List& list) {
    X509_REVOKED* entry = nullptr;
    return X509_NAME_cmp(X509_CRL_get_issuer(list.get()), issuer) == 0 &&
           X509_CRL_get0_by_cert(list.get(), &entry, certificate) == 1;
  });
}

// --- Session ----------------------------------------------------------------

// OpenSSL calls these in place of a socket.
struct TlsSession::Callbacks {
  static TlsSession& SessionOf(BIO* bio) {
    return *static_cast<TlsSession*>(BIO_get_data(bio));
  }

  static int Write(BIO* bio, const char* data, int bytes) {
    TlsSession& session = SessionOf(bio);
    BIO_clear_retry_flags(bio);
    const auto* const from = reinterpret_cast<const std::byte*>(data);
    // No exception may pass through OpenSSL.
    const absl::Status kept = WithinMemory([&] {
      session.unsent_.insert(session.unsent_.end(), from, from + bytes);
      return absl::OkStatus();
    });
    if (kept.ok()) return bytes;
    session.ran_out_ = true;
    return -1;
  }

  // OpenSSL asks for what it needs and no more, so that nothing behind the
  // handshake is read before it is known who decrypts it.
  static int ReadHandshake(BIO* bio, char* data, int bytes) {
    TlsSession& session = SessionOf(bio);
    const IoResult result = ReceiveSome(
        session.socket_,
        std::as_writable_bytes(std::span(data, static_cast<size_t>(bytes))));
    session.is_closed_ = result.outcome == IoOutcome::kClosed;
    if (session.is_closed_) return 0;
    if (result.outcome == IoOutcome::kSome) {
      return static_cast<int>(result.bytes);
    }
    BIO_set_retry_read(bio);
    return -1;
  }

  static int Read(BIO* bio, char* data, int bytes) {
    TlsSession& session = SessionOf(bio);
    BIO_clear_retry_flags(bio);
    if (!session.is_shaken_) return ReadHandshake(bio, data, bytes);
    const size_t count = std::min(static_cast<size_t>(bytes),
                                  session.received_end_ - session.read_);
    if (count == 0) {
      if (session.is_closed_) return 0;
      BIO_set_retry_read(bio);
      return -1;
    }
    std::copy_n(session.received_.begin() + static_cast<int64_t>(session.read_),
                count, reinterpret_cast<std::byte*>(data));
    session.read_ += count;
    return static_cast<int>(count);
  }

  static long Control(BIO* /*bio*/, int what, long /*number*/, void* /*data*/) {
    return what == BIO_CTRL_FLUSH ? 1 : 0;
  }
};

const BIO_METHOD* TlsSession::Method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "alpheus");
    if (made != nullptr) {
      BIO_meth_set_write(made, Callbacks::Write);
      BIO_meth_set_read(made, Callbacks::Read);
      BIO_meth_set_ctrl(made, Callbacks::Control);
    }
    return made;
  }();
  return method;
}

TlsSession::TlsSession(const TlsSettings& settings, const Descriptor& socket,
                       Side side)
    : socket_(socket),
      side_(side),
      ssl_(SSL_new(settings.context_.get()), SSL_free) {
  const BIO_METHOD* const method = Method();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
  if (ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    ssl_.reset();
    failure_ = "no memory for a session of TLS";
    return;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // takes it
  SSL_set_app_data(ssl_.get(), this);
  if (side == Side::kConnects) {
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

TlsSession::~TlsSession() { ForgetSecrets(); }

TlsSession::Progress TlsSession::Fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  return Progress::kFailed;
}

// Returns why OpenSSL ended a call so.
std::string TlsSession::Describe(int outcome) {
  if (ran_out_) return "memory ran out";
  const long verified = SSL_get_verify_result(ssl_.get());
  if (verified == X509_V_ERR_UNABLE_TO_GET_CRL) {
    return "its certificate is refused: there is no list of what its issuer "
           "has "
           "revoked";
  }
  if (verified != X509_V_OK) {
    return absl::StrCat("its certificate is refused: ",
                        X509_verify_cert_error_string(verified));
  }
  const bool is_end = outcome == SSL_ERROR_ZERO_RETURN ||
                      outcome == SSL_ERROR_SYSCALL || is_closed_;
  if (is_end && ERR_peek_last_error() == 0) {
    has_ended_ = true;
    return "it ended the connection";
  }
  return absl::StrCat("TLS: ", ErrorsOfThread::Text());
}

// FTL1.
bool TlsSession::LearnPeer() {
  const Certificate peer(SSL_get1_peer_certificate(ssl_.get()), X509_free);
  if (peer == nullptr) {
    Fail("it shows no certificate");
    return false;
  }
  std::optional<std::string> uri = UriIn(peer.get());
  if (!uri) {
    Fail("its certificate names nobody, or several, by a URI");
    return false;
  }
  peer_name_ = *std::move(uri);
  return true;
}

bool TlsSession::FailIfRevoked(const TlsSettings& now) {
  const STACK_OF(X509)* const chain = SSL_get0_verified_chain(ssl_.get());
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    if (!now.Revokes(sk_X509_value(chain, i))) continue;
    Fail(absl::StrCat("its certificate, of ", peer_name_,
                      ", has been revoked since it connected"));
    return true;
  }
  return false;
}

bool TlsSession::IsTrustedBy(const TlsSettings& now) const {
  const ErrorsOfThread errors;
  STACK_OF(X509)* const chain = SSL_get0_verified_chain(ssl_.get());
  const std::unique_ptr<X509_STORE_CTX, void (*)(X509_STORE_CTX*)> context(
      X509_STORE_CTX_new(), X509_STORE_CTX_free);
  const char* const peer =
      side_ == Side::kConnects ? "ssl_server" : "ssl_client";
  if (context == nullptr ||
      X509_STORE_CTX_init(context.get(),
                          SSL_CTX_get_cert_store(now.context_.get()),
                          sk_X509_value(chain, 0), chain) != 1 ||
      X509_STORE_CTX_set_default(context.get(), peer) != 1) {
    return false;
  }
  X509_STORE_CTX_set_verify_cb(context.get(), ListsMayExpire);
  return X509_verify_cert(context.get()) == 1;
}

TlsSession::Progress TlsSession::Shake() {
  if (!failure_.empty()) return Progress::kFailed;
  const ErrorsOfThread errors;
  const int done = SSL_do_handshake(ssl_.get());
  const int outcome = SSL_get_error(ssl_.get(), done);
  // Also an alert, which says to the peer what is wrong.
  Flush();
  if (done == 1) {
    if (!LearnPeer()) return Progress::kFailed;
    is_shaken_ = true;
    OffloadToKernel();
    return Progress::kDone;
  }
  if (outcome != SSL_ERROR_WANT_READ) return Fail(Describe(outcome));
  return Progress::kWaiting;
}

// OpenSSL calls it for each secret of a handshake, with a line: its name, the
// client's random bytes, and the secret, both in hexadecimal digits.
void TlsSession::TakeSecret(const ssl_st* ssl, const char* line) {
  auto& session = *static_cast<TlsSession*>(SSL_get_app_data(ssl));
  const absl::string_view text(line);
  Secret* const secret = absl::StartsWith(text, "CLIENT_TRAFFIC_SECRET_0 ")
                             ? &session.client_secret_
                         : absl::StartsWith(text, "SERVER_TRAFFIC_SECRET_0 ")
                             ? &session.server_secret_
                             : nullptr;
  if (secret == nullptr) return;
  // No exception may pass through OpenSSL. Without the secret libssl goes on.
  WithinMemory([&] {
    std::string bytes =
        absl::HexStringToBytes(text.substr(text.rfind(' ') + 1));
    secret->assign(bytes.begin(), bytes.end());
    OPENSSL_cleanse(bytes.data(), bytes.size());
    return absl::OkStatus();
  }).IgnoreError();
}

void TlsSession::ForgetSecrets() {
  for (Secret* const secret : {&client_secret_, &server_secret_}) {
    OPENSSL_cleanse(secret->data(), secret->size());
    secret->clear();
  }
}

// FTL5. libssl has neither sent nor received a record with these keys.
void TlsSession::OffloadToKernel() {
  const bool connects = side_ == Side::kConnects;
  const auto give = [&](KernelTlsDirection direction, const Secret& secret) {
    std::optional<KernelTlsKey> key = KeyOf(secret);
    if (!key) return false;
    const bool is_taken = GiveToKernel(socket_, direction, *key);
    OPENSSL_cleanse(&*key, sizeof(*key));
    return is_taken;
  };
  if (!has_unsent()) {
    kernel_encrypts_ = give(KernelTlsDirection::kSending,
                            connects ? client_secret_ : server_secret_);
  }
  if (kernel_encrypts_) {
    kernel_decrypts_ = give(KernelTlsDirection::kReceiving,
                            connects ? server_secret_ : client_secret_);
  }
  ForgetSecrets();
}

void TlsSession::Flush() {
  while (has_unsent()) {
    iovec piece{unsent_.data() + sent_, unsent_.size() - sent_};
    const IoResult result = SendSome(socket_, {&piece, 1});
    // Receive finds out that the peer is gone, after its last bytes.
    if (result.outcome != IoOutcome::kSome) return;
    sent_ += result.bytes;
    sent_bytes_ += result.bytes;
  }
  unsent_.clear();
  sent_ = 0;
}

IoResult TlsSession::Send(std::span<iovec> from) {
  if (kernel_encrypts_) {
    const IoResult result = SendSome(socket_, from);
    sent_bytes_ += result.bytes;
    return result;
  }
  const ErrorsOfThread errors;
  Flush();
  if (has_unsent()) return {IoOutcome::kNothing, 0};
  size_t taken = 0;
  for (const iovec& piece : from) {
    size_t done = 0;
    while (done < piece.iov_len && taken < kBatchBytes) {
      size_t bytes = 0;
      const int wrote = SSL_write_ex(
          ssl_.get(), static_cast<const std::byte*>(piece.iov_base) + done,
          std::min(piece.iov_len - done, kBatchBytes - taken), &bytes);
      if (wrote != 1) {
        Fail(Describe(SSL_get_error(ssl_.get(), wrote)));
        return {IoOutcome::kClosed, 0};
      }
      done += bytes;
      taken += bytes;
    }
  }
  Flush();
  return {IoOutcome::kSome, taken};
}

// Receives what is there. Returns whether there was something.
bool TlsSession::Fill() {
  if (has_unread()) return true;
  if (is_closed_) return false;
  received_.resize(kReadBytes);
  read_ = 0;
  const IoResult result = ReceiveSome(socket_, received_);
  received_end_ = result.bytes;
  has_drained_ = result.bytes < kReadBytes;
  is_closed_ = result.outcome == IoOutcome::kClosed;
  return result.outcome == IoOutcome::kSome;
}

IoResult TlsSession::Receive(std::span<std::byte> into) {
  // A send has failed: the peer hears nothing more.
  if (!failure_.empty()) return {IoOutcome::kClosed, 0};
  if (kernel_decrypts_) {
    // It ends the connection at what is no record of data.
    const IoResult result = ReceiveSome(socket_, into);
    has_drained_ = result.bytes < into.size();
    return result;
  }
  const ErrorsOfThread errors;
  bool has_filled = false;
  for (;;) {
    size_t bytes = 0;
    const int got = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
    // The kernel could not send an answer of libssl.
    if (unsent_.size() - sent_ > (kernel_encrypts_ ? 0 : kUnsentMax)) {
      Fail("it asks for more answers of TLS than it takes");
      return {IoOutcome::kClosed, 0};
    }
    if (got == 1) return {IoOutcome::kSome, bytes};
    const int outcome = SSL_get_error(ssl_.get(), got);
    if (outcome != SSL_ERROR_WANT_READ) {
      Fail(Describe(outcome));
      return {IoOutcome::kClosed, 0};
    }
    if (has_filled && !is_closed_) return {IoOutcome::kNothing, 0};  // FTL4
    has_filled = true;
    if (!Fill() && !is_closed_) return {IoOutcome::kNothing, 0};
    // OpenSSL is told an end, too.
  }
}

}  // namespace alpheus::fabric::tcp
