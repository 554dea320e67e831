// SPDX-License-Identifier: Apache-2.0
// tls: TLS 1.3 between two adapters, and the only door to libssl.
//
// Idea: OpenSSL works on two buffers, and never on the socket: what it has
// encrypted waits in one for the next send, and what came waits in the other
// until it is decrypted. So one system call moves many of its records, and a
// peer that is gone raises no signal. Where the kernel has TLS it gets the keys
// once the handshake is over (kernel_tls.h), and encrypts and decrypts instead.
// Both sides show a certificate. The name in it, a URI, is what a program may
// know of its peer.
//
// There is one cipher suite, ChaCha20-Poly1305. A key of AES-GCM must be
// replaced after some 2^24.5 full records (RFC 8446, 5.5). A busy log reaches
// that within hours, and libssl does not replace keys by itself. A key of
// ChaCha20-Poly1305 has no such limit.
//
// Invariants:
//   FTL1. No byte of a program is sent or taken before the peer has proved a
//         certificate that one of the authorities signed, that is valid now,
//         and that names the peer by one URI.
//   FTL2. Bytes that a send takes have been read when it returns: memory that
//         is referred to may change then.
//   FTL3. At most kBatchBytes are encrypted ahead of the kernel, and at most
//         kReadBytes are read ahead of the decryption. The answers that TLS
//         itself gives come on top: up to kUnsentMax in all.
//   FTL4. One Receive reads the socket once, whatever it finds: a peer that
//         sends only what is TLS's own keeps nobody else waiting. A handshake
//         is bounded by libssl.
//   FTL5. The kernel gets the key of a direction before the first byte of a
//         program goes there, and then has that direction alone. It gets none
//         if bytes of the handshake still wait to be sent.
//   FTL6. With lists of revoked certificates nobody is let in whose
//         certificate, or one of its issuers', is on one of them, or has an
//         issuer without a list. Each authority has one: of lists that are cut
//         off between two, none is taken.
//   FTL7. A list that expires while it is in use goes on: it refuses those that
//         it names, and no others. Else all nodes would lose each other because
//         nobody renewed a list in time.
//   FTL8. A session ends as it began: with the settings of its handshake. Newer
//         lists may end it all the same (FailIfRevoked).
// Thread safety: TlsSettings: all members by many threads. TlsSession: none.
// References: RFC 8446; docs/design/fabric.md#encryption.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_TLS_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_TLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quorum/members/certificates.h"
#include "replication/fabric/tcp/socket.h"

struct X509_crl_st;
struct ssl_st;
struct ssl_ctx_st;
struct x509_st;
struct bio_method_st;

namespace alpheus::fabric::tcp {

// Texts of files, all as PEM, and how errors call the files.
struct TlsTexts {
  std::string certificate;  // this side's own, those of its issuers behind it
  std::string key;
  std::string authorities;  // which sign the certificates of peers
  // Lists of certificates that their issuers have revoked; nothing: none is
  // looked for.
  std::optional<std::string> revoked = {};
  std::string certificate_name = "certificate";
  std::string key_name = "key";
  std::string authorities_name = "authorities";
  std::string revoked_name = "revoked certificates";
};

// The part that all sessions of one process share.
class TlsSettings {
 public:
  // Asks no clock. Errors: InvalidArgument (no such text; a key with a
  // passphrase, or of another certificate; a certificate that names nobody by a
  // URI; an authority without a list, FTL6); ResourceExhausted (no memory).
  static absl::StatusOr<std::shared_ptr<const TlsSettings>> Make(
      const TlsTexts& texts);

  // Returns the URI in this side's own certificate.
  const std::string& own_name() const { return own_name_; }
  // Returns when this side's own certificate, and those of its issuers in the
  // same text, are all good.
  const quorum::Validity& own_validity() const { return own_validity_; }
  // Returns when all lists are good; without lists: always.
  const quorum::Validity& revoked_validity() const { return revoked_validity_; }
  // Returns whether a list names this side's own certificate.
  bool is_own_revoked() const { return is_own_revoked_; }

 private:
  friend class TlsSession;
  using Context = std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)>;
  using List = std::unique_ptr<X509_crl_st, void (*)(X509_crl_st*)>;

  explicit TlsSettings(Context context);
  absl::Status UseOwn(const TlsTexts& texts);
  absl::Status Trust(const TlsTexts& texts);
  absl::Status UseLists(const std::string& text, const std::string& name);
  absl::Status CheckHasList(x509_st* authority, const TlsTexts& texts) const;
  // Returns whether a list names the certificate.
  bool Revokes(x509_st* certificate) const;

  Context context_;
  std::vector<List> lists_;
  std::string own_name_;
  quorum::Validity own_validity_;
  quorum::Validity revoked_validity_;
  bool is_own_revoked_ = false;
};

// One connection's.
class TlsSession {
 public:
  static constexpr size_t kBatchBytes = size_t{256} << 10;
  static constexpr size_t kReadBytes = size_t{64} << 10;
  static constexpr size_t kUnsentMax = 2 * kBatchBytes;

  enum class Side { kConnects, kAccepts };
  enum class Progress {
    kDone,
    kWaiting,  // for the socket
    kFailed,   // failure() says why
  };

  // `socket` must outlive it, and be connected when Shake is called.
  TlsSession(const TlsSettings& settings, const Descriptor& socket, Side side);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Goes on with the handshake.
  Progress Shake();

  // Requires for all below: Shake has returned kDone.

  // Returns whether the kernel encrypts and decrypts (FTL5).
  bool is_offloaded() const { return kernel_encrypts_ && kernel_decrypts_; }

  // Encrypts and sends; `bytes` of the result were taken (FTL2). kNothing: the
  // kernel has not taken what was encrypted before.
  IoResult Send(std::span<iovec> from);
  // Returns whether encrypted bytes wait for the kernel.
  bool has_unsent() const { return sent_ < unsent_.size(); }
  // Sends these.
  void Flush();
  // Returns how many bytes the kernel has taken so far, encrypted or to be so.
  uint64_t sent_bytes() const { return sent_bytes_; }

  // Receives and decrypts.
  IoResult Receive(std::span<std::byte> into);
  // Returns whether Receive may have more at once, though the socket has
  // nothing.
  bool has_unread() const { return read_ < received_end_; }
  // Returns whether the socket had nothing more when it was read last.
  bool has_drained() const { return has_drained_ && !has_unread(); }

  // Fails if the lists of `now` name the peer's certificate, or one of its
  // issuers' (FTL8). Returns whether they do.
  bool FailIfRevoked(const TlsSettings& now);

  // Returns whether a handshake with these settings would let the peer in with
  // the certificate that it has shown (FTL1, FTL6, FTL7).
  bool IsTrustedBy(const TlsSettings& now) const;

  // Returns the URI in the peer's certificate.
  const std::string& peer_name() const { return peer_name_; }
  // Returns why the session has failed, as a sentence without its full stop;
  // empty: it has not.
  const std::string& failure() const { return failure_; }
  // Returns whether the peer just ended the connection, without any fault.
  bool has_ended() const { return has_ended_; }

 private:
  struct Callbacks;
  // The secret of one direction's traffic; empty: not known yet.
  using Secret = std::vector<unsigned char>;
  friend class TlsSettings;
  static const bio_method_st* Method();
  static void TakeSecret(const ssl_st* ssl, const char* line);

  void OffloadToKernel();
  void ForgetSecrets();
  bool Fill();
  Progress Fail(std::string why);
  std::string Describe(int outcome);
  bool LearnPeer();

  const Descriptor& socket_;
  const Side side_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  Secret client_secret_;  // of what the side that connects sends
  Secret server_secret_;
  bool is_shaken_ = false;
  bool kernel_encrypts_ = false;
  bool kernel_decrypts_ = false;
  std::vector<std::byte> unsent_;    // encrypted
  size_t sent_ = 0;                  // of these
  uint64_t sent_bytes_ = 0;          // taken by the kernel, ever
  std::vector<std::byte> received_;  // still encrypted, up to received_end_
  size_t received_end_ = 0;
  size_t read_ = 0;  // of these
  bool has_drained_ = false;
  bool is_closed_ = false;  // by the peer
  bool has_ended_ = false;
  bool ran_out_ = false;  // of memory, in a callback
  std::string peer_name_;
  std::string failure_;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_TLS_H_
