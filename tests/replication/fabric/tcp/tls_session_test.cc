// SPDX-License-Identifier: Apache-2.0
// A session of TLS whose peer follows the standard, and wants no good: it sends
// only messages of TLS itself.
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/ioctl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/tls.h"
#include "tests/replication/fabric/tcp/test_tls.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::testing {
namespace {

using fabric::tcp::Descriptor;
using fabric::tcp::IoOutcome;
using fabric::tcp::IoResult;
using fabric::tcp::TlsSession;
using fabric::tcp::TlsSettings;
using Progress = TlsSession::Progress;

// A client by OpenSSL alone.
class RawClient {
 public:
  RawClient(const TestCertificate& own, int fd)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(nullptr, SSL_free) {
    const auto read = [](const std::string& text) {
      return std::unique_ptr<BIO, int (*)(BIO*)>(
          BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
          BIO_free);
    };
    X509* const certificate = PEM_read_bio_X509(read(own.certificate).get(),
                                                nullptr, nullptr, nullptr);
    EVP_PKEY* const key =
        PEM_read_bio_PrivateKey(read(own.key).get(), nullptr, nullptr, nullptr);
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), certificate), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd);
    SSL_set_connect_state(ssl_.get());
  }

  bool Shake() { return SSL_do_handshake(ssl_.get()) == 1; }
  // Sends a new key, and asks for one. Returns false if the socket is full.
  bool UpdateKeys() {
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED) != 1) return false;
    return SSL_do_handshake(ssl_.get()) == 1;
  }
  bool Write(const std::string& text) {
    return SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())) ==
           static_cast<int>(text.size());
  }
  // Waits for one record.
  std::string Read() {
    std::array<char, 100> text;
    int bytes = -1;
    while (bytes < 0) {
      bytes = SSL_read(ssl_.get(), text.data(), text.size());
      if (SSL_get_error(ssl_.get(), bytes) == SSL_ERROR_SSL) return "";
    }
    return {text.data(), static_cast<size_t>(bytes)};
  }

 private:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

class TlsSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // TCP packs many short messages into few buffers.
    auto listener = fabric::tcp::ListenOn("127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    auto connected = fabric::tcp::StartConnect(listener->address, "");
    ASSERT_TRUE(connected.ok()) << connected.status();
    other_ = *std::move(connected);
    while (!own_.is_open()) {
      own_ = std::move(fabric::tcp::AcceptOne(listener->socket).socket);
    }
    settings_ = MakeTls(TestNodeAuthority(), "URI:test://host/1");
    session_ = std::make_unique<TlsSession>(*settings_, own_,
                                            TlsSession::Side::kAccepts);
    client_ = std::make_unique<RawClient>(
        TestNodeAuthority().IssueFor("URI:test://host/0"), other_.get());
    bool is_shaken = false;
    Progress progress = Progress::kWaiting;
    while (!is_shaken || progress == Progress::kWaiting) {
      if (!is_shaken) is_shaken = client_->Shake();
      if (progress == Progress::kWaiting) progress = session_->Shake();
    }
    ASSERT_EQ(progress, Progress::kDone) << session_->failure();
    EXPECT_EQ(session_->peer_name(), "test://host/0");
  }

  int BytesInSocket() const {
    int bytes = 0;
    EXPECT_EQ(ioctl(own_.get(), FIONREAD, &bytes), 0);
    return bytes;
  }

  Descriptor own_;
  Descriptor other_;
  std::shared_ptr<const TlsSettings> settings_;
  std::unique_ptr<TlsSession> session_;
  std::unique_ptr<RawClient> client_;
  std::array<std::byte, 20'000> into_;
};

// FTL4. Others have their turn although this peer always has more.
TEST_F(TlsSessionTest, ReceiveReadsTheSocketOnce) {
  if (session_->is_offloaded()) {
    GTEST_SKIP() << "skipped: the kernel reads, and ends such a connection";
  }
  while (client_->UpdateKeys()) {
  }
  ASSERT_GT(BytesInSocket(), int{TlsSession::kReadBytes});
  EXPECT_EQ(session_->Receive(into_).outcome, IoOutcome::kNothing);
  EXPECT_GT(BytesInSocket(), 0);
  EXPECT_FALSE(session_->has_drained());
}

// FTL3.
TEST_F(TlsSessionTest, AnswersOfTlsThatNobodyTakesEndTheConnection) {
  if (session_->is_offloaded()) {
    GTEST_SKIP() << "skipped: the kernel reads, and ends such a connection";
  }
  for (;;) {
    while (client_->UpdateKeys()) {
    }
    const IoOutcome outcome = session_->Receive(into_).outcome;
    if (outcome == IoOutcome::kClosed) break;
    ASSERT_EQ(outcome, IoOutcome::kNothing);
  }
  EXPECT_EQ(session_->failure(),
            "it asks for more answers of TLS than it takes");
  EXPECT_EQ(session_->Receive(into_).outcome, IoOutcome::kClosed);
}

// FTL5. The kernel has no other key.
TEST_F(TlsSessionTest, MessageOfTlsEndsAConnectionOfTheKernel) {
  if (!session_->is_offloaded()) {
    GTEST_SKIP() << "skipped: this kernel has no TLS";
  }
  ASSERT_TRUE(client_->UpdateKeys());
  EXPECT_EQ(session_->Receive(into_).outcome, IoOutcome::kClosed);
}

// A peer that has libssl's records alone understands either way.
TEST_F(TlsSessionTest, PeerHearsWhatIsSentAndIsHeard) {
  EXPECT_EQ(session_->is_offloaded(), KernelHasTls());
  std::string said = "to the peer";
  iovec piece{said.data(), said.size()};
  ASSERT_EQ(session_->Send({&piece, 1}).bytes, said.size());
  EXPECT_FALSE(session_->has_unsent());
  EXPECT_EQ(client_->Read(), said);
  ASSERT_TRUE(client_->Write("to the session"));
  IoResult got;
  while (got.outcome == IoOutcome::kNothing) got = session_->Receive(into_);
  ASSERT_EQ(got.outcome, IoOutcome::kSome);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(into_.data()), got.bytes),
            "to the session");
}

}  // namespace
}  // namespace alpheus::testing
