// SPDX-License-Identifier: Apache-2.0
// Adapters that encrypt: who is let in, what is said to the others, and streams
// whose pieces are no records of TLS. tcp_conformance_test.cc has the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "replication/fabric/tcp/socket.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/tls.h"
#include "tests/replication/fabric/tcp/tcp_world.h"
#include "tests/replication/fabric/tcp/test_tls.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::testing {
namespace {

using fabric::ConnectionEvent;
using fabric::UnauthenticatedEnd;
using fabric::tcp::TcpFabric;
using fabric::tcp::TcpFabricOptions;
using fabric::tcp::TlsSettings;
using fabric::tcp::TlsTexts;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = ConnectionEvent::Kind;

// --- Files -------------------------------------------------------------------

class TlsSettingsTest : public ::testing::Test {
 protected:
  std::string Refused(const TlsTexts& texts) {
    const auto made = TlsSettings::Make(texts);
    EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
    return std::string(made.status().message());
  }

  const TestAuthority& authority_ = TestNodeAuthority();
  const TestCertificate own_ = authority_.IssueFor("URI:test://host/1");
  const TlsTexts good_ = TlsTextsFor(authority_, own_);
};

TEST_F(TlsSettingsTest, OwnNameIsTheUri) {
  const auto made = TlsSettings::Make(good_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->own_name(), "test://host/1");
}

TEST_F(TlsSettingsTest, TextsOfNoUseAreRefusedByTheirNames) {
  TlsTexts texts = good_;
  texts.certificate = "nothing";
  EXPECT_THAT(Refused(texts), HasSubstr("certificate: "));
  texts.certificate = own_.certificate.substr(0, own_.certificate.size() / 2);
  EXPECT_THAT(Refused(texts), HasSubstr("certificate: "));
  texts.certificate = own_.certificate + own_.certificate.substr(0, 200);
  EXPECT_THAT(Refused(texts), HasSubstr("certificate 2 is cut off"));
  texts = good_;
  texts.key = "nothing";
  EXPECT_THAT(Refused(texts), HasSubstr("key: "));
  texts.key = LockedKey();
  EXPECT_THAT(Refused(texts), HasSubstr("the key has a passphrase"));
  texts.key = authority_.IssueFor("URI:test://host/1").key;
  EXPECT_THAT(Refused(texts), HasSubstr("the key of another certificate"));
  texts = good_;
  texts.authorities = "";
  EXPECT_THAT(Refused(texts), HasSubstr("authorities: "));
}

TEST_F(TlsSettingsTest, CertificateNamesOneUri) {
  for (const char* names :
       {"DNS:localhost", "URI:test://host/1,URI:test://host/2"}) {
    EXPECT_THAT(Refused(TlsTextsFor(authority_, authority_.IssueFor(names))),
                HasSubstr("names nobody, or several"))
        << names;
  }
}

// FTL6.
TEST_F(TlsSettingsTest, ListsAreOfAllAuthoritiesAndWhole) {
  TlsTexts texts = good_;
  texts.revoked = authority_.Revoke({}, kYear2000, kYear2001);
  const auto made = TlsSettings::Make(texts);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE((*made)->is_own_revoked());
  EXPECT_EQ((*made)->own_validity().begin_s, kYear2000);
  EXPECT_EQ((*made)->own_validity().end_s, kYear2999);
  EXPECT_EQ((*made)->revoked_validity().begin_s, kYear2000);
  EXPECT_EQ((*made)->revoked_validity().end_s, kYear2001);
  const std::string good = authority_.Revoke({own_.certificate});
  const TestAuthority other("others");
  const TestAuthority namesake("nodes");
  for (const std::string& bad :
       {std::string(), std::string("nothing"), own_.certificate,
        good.substr(0, good.size() / 2), good + good.substr(0, 100)}) {
    texts.revoked = bad;
    EXPECT_THAT(Refused(texts), AllOf(HasSubstr("revoked certificates: "),
                                      HasSubstr("all of them whole")))
        << bad;
  }
  texts.revoked = other.Revoke({});
  EXPECT_THAT(Refused(texts),
              HasSubstr("0 lists are of \"CN=nodes\", and it has signed 0"));
  texts.revoked = namesake.Revoke({});
  EXPECT_THAT(Refused(texts), HasSubstr("and it has signed 0 of them"));
  // A list that is cut off between two.
  texts.authorities = authority_.certificate() + other.certificate();
  texts.revoked = good;
  EXPECT_THAT(Refused(texts), HasSubstr("0 lists are of \"CN=others\""));
  texts.revoked = good + other.Revoke({});
  EXPECT_TRUE(TlsSettings::Make(texts).ok());
  // libssl could take the list of one for that of the other.
  texts.authorities = authority_.certificate() + namesake.certificate();
  texts.revoked = good + namesake.Revoke({});
  EXPECT_THAT(Refused(texts), HasSubstr("have names of their own"));
}

TEST_F(TlsSettingsTest, OwnCertificateMayBeRevoked) {
  TlsTexts texts = good_;
  texts.revoked = authority_.Revoke({own_.certificate});
  const auto made = TlsSettings::Make(texts);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE((*made)->is_own_revoked());
}

// --- Peers -------------------------------------------------------------------

// Host 0 connects to host 1; each has settings of its own. The parameter:
// connections share sockets.
class TlsPeersTest : public ::testing::TestWithParam<bool> {
 protected:
  struct Said {
    UnauthenticatedEnd why;
    std::string detail;
  };

  // Settings of a host with this list, and a certificate of the authority.
  static std::shared_ptr<const TlsSettings> With(const std::string& revoked,
                                                 const TestCertificate& own) {
    TlsTexts texts = TlsTextsFor(TestNodeAuthority(), own);
    texts.revoked = revoked;
    auto made = TlsSettings::Make(texts);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  void Start(std::shared_ptr<const TlsSettings> connects,
             std::shared_ptr<const TlsSettings> accepts) {
    for (int host = 0; host < 2; ++host) {
      TcpFabricOptions options;
      options.source_host = host == 0 ? "127.0.0.1" : "127.0.0.2";
      tls_[host] = host == 0 ? connects : accepts;
      if (tls_[host] != nullptr) {
        options.tls = [this, host] {
          ++asked_[host];
          return tls_[host];
        };
      }
      options.kept_bytes_max = kKeptBytesMax;
      options.shares_sockets = GetParam();
      options.on_rejected = [this, host](std::string_view /*peer*/,
                                         UnauthenticatedEnd why,
                                         std::string_view detail) {
        auto& said = host == 0 ? said_by_0_ : said_;
        said.push_back({why, std::string(detail)});
      };
      fabrics_[host] = std::make_unique<TcpFabric>(options, clock_, random_);
      memory_[host].resize(kBytes / 8);
      key_[host] =
          *fabrics_[host]->Register(Memory(host), fabric::RemoteAccess::kAll);
    }
    address_ = *fabrics_[1]->Listen("127.0.0.2:0");
  }
  std::span<std::byte> Memory(int host) {
    return std::as_writable_bytes(std::span(memory_[host]));
  }
  fabric::LocalBytes Local(int host, size_t offset, size_t bytes) {
    return {key_[host], Memory(host).subspan(offset, bytes)};
  }

  void Turn() {
    clock_.Forward(1'000);
    for (int host = 0; host < 2; ++host) {
      std::array<fabric::Completion, 64> some;
      const size_t count = fabrics_[host]->Poll(some, &events_[host]);
      for (const fabric::Completion& one : std::span(some).first(count)) {
        EXPECT_EQ(one.status, fabric::CompletionStatus::kOk);
      }
      completed_[host] += count;
    }
  }
  // Both adapters go on until it is so. Time goes on by a little, so that
  // delayed answers leave (TF4) and no peer looks silent. Returns false if it
  // does not become so.
  template <class Done>
  bool Until(const Done& done) {
    const Deadline end = InPatience();
    while (!done()) {
      const bool is_over = end.HasPassed(Clock::Real().NowNanos());
      EXPECT_FALSE(is_over) << "what was waited for did not come";
      if (is_over) return false;
      Turn();
    }
    return true;
  }
  ConnectionEvent Await(int host, Kind kind) {
    const auto find = [&] {
      return std::ranges::find(events_[host], kind, &ConnectionEvent::kind);
    };
    if (!Until([&] { return find() != events_[host].end(); })) return {};
    return *find();
  }
  // Connects, and fails. Returns what host 0 is told.
  std::string Fails() {
    EXPECT_TRUE(fabrics_[0]->Connect(address_, "hello", Deadline()).ok());
    Until([&] { return !events_[0].empty() || !events_[1].empty(); });
    EXPECT_THAT(events_[1], IsEmpty());
    if (events_[0].empty()) return "";
    EXPECT_EQ(events_[0].front().kind, Kind::kUnreachable);
    return events_[0].front().why;
  }
  void Connect() {
    at_[0] = *fabrics_[0]->Connect(address_, "hello", Deadline());
    Until([&] { return !events_[0].empty() || !events_[1].empty(); });
    ASSERT_THAT(events_[0], IsEmpty());  // not refused
    const ConnectionEvent request = Await(1, Kind::kRequested);
    EXPECT_EQ(request.private_data, "hello");
    at_[1] = request.connection;
    ASSERT_TRUE(fabrics_[1]->Accept(at_[1], "welcome").ok());
    EXPECT_EQ(Await(0, Kind::kEstablished).private_data, "welcome");
  }

  static constexpr size_t kBytes = size_t{3} << 20;
  static constexpr uint64_t kKeptBytesMax = 4096;

  HandClock clock_;
  Random random_{/*seed=*/7};
  std::vector<Said> said_;  // by host 1
  std::vector<Said> said_by_0_;
  std::shared_ptr<const TlsSettings> tls_[2];
  int asked_[2] = {0, 0};  // how often the hosts asked for these
  std::vector<uint64_t> memory_[2];
  fabric::RegionKey key_[2];
  std::unique_ptr<TcpFabric> fabrics_[2];
  std::string address_;
  std::vector<ConnectionEvent> events_[2];
  size_t completed_[2] = {0, 0};
  fabric::ConnectionId at_[2];
};

TEST_P(TlsPeersTest, EachLearnsTheOthersName) {
  Start(MakeTls(TestNodeAuthority(), "URI:test://host/0"),
        MakeTls(TestNodeAuthority(), "URI:test://host/1,DNS:one"));
  Connect();
  EXPECT_EQ(Await(1, Kind::kRequested).peer_name, "test://host/0");
  EXPECT_EQ(Await(0, Kind::kEstablished).peer_name, "test://host/1");
  EXPECT_THAT(said_, IsEmpty());
}

// FTL5.
TEST_P(TlsPeersTest, KernelEncryptsWhereItCan) {
  Start(MakeTls(TestNodeAuthority(), "URI:test://host/0"),
        MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  Connect();
  const uint64_t expected = KernelHasTls() ? 1 : 0;
  EXPECT_EQ(fabrics_[0]->counters().offloaded, expected);
  EXPECT_EQ(fabrics_[1]->counters().offloaded, expected);
}

TEST_P(TlsPeersTest, NamesAreEmptyWithoutTls) {
  Start(nullptr, nullptr);
  Connect();
  EXPECT_EQ(Await(1, Kind::kRequested).peer_name, "");
  EXPECT_EQ(Await(0, Kind::kEstablished).peer_name, "");
}

// Records of TLS are smaller than these messages, and cut them anywhere.
TEST_P(TlsPeersTest, LongAndShortMessagesArriveWhole) {
  Start(MakeTls(TestNodeAuthority(), "URI:test://host/0"),
        MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  Connect();
  for (size_t i = 0; i < kBytes; ++i) {
    Memory(0)[i] = static_cast<std::byte>(i * 131 >> 3);
  }
  const size_t lengths[] = {1, 64, 4096, 16'384, 16'385, 100'000, 2'000'000};
  size_t offset = 0;
  size_t posted = 0;
  for (const size_t bytes : lengths) {
    ASSERT_TRUE(fabrics_[0]
                    ->PostWrite(at_[0], fabric::WorkId(++posted),
                                Local(0, offset, bytes), {key_[1], offset})
                    .ok());
    offset += bytes;
  }
  Until([&] { return completed_[0] == posted; });
  EXPECT_EQ(std::memcmp(Memory(0).data(), Memory(1).data(), offset), 0);
  // And back.
  std::ranges::fill(Memory(0), std::byte{0});
  ASSERT_TRUE(fabrics_[0]
                  ->PostRead(at_[0], fabric::WorkId(9), Local(0, 0, offset),
                             {key_[1], 0})
                  .ok());
  Until([&] { return completed_[0] == posted + 1; });
  EXPECT_EQ(std::memcmp(Memory(0).data(), Memory(1).data(), offset), 0);
}

// Host 1 reads no more while it keeps messages that wait for a receive. What it
// has read ahead by then makes its socket ready for nothing.
TEST_P(TlsPeersTest, ReadingGoesOnWithWhatWasReadAhead) {
  Start(MakeTls(TestNodeAuthority(), "URI:test://host/0"),
        MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  Connect();
  constexpr size_t kMessages = 40;
  constexpr size_t kMessageBytes = 1000;
  for (size_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(fabrics_[0]
                    ->PostSend(at_[0], fabric::WorkId(i),
                               Local(0, i * kMessageBytes, kMessageBytes))
                    .ok());
  }
  Until([&] { return fabrics_[1]->counters().kept_bytes >= kKeptBytesMax; });
  EXPECT_EQ(completed_[1], 0u);
  for (size_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(fabrics_[1]
                    ->PostReceive(at_[1], fabric::WorkId(i),
                                  Local(1, i * kMessageBytes, kMessageBytes))
                    .ok());
    Until([&] { return completed_[1] > i; });
  }
  Until([&] { return completed_[0] == kMessages; });
}

TEST_P(TlsPeersTest, PeerOfAnotherAuthorityIsLetInByNobody) {
  const TestAuthority other("others");
  Start(MakeTls(other, "URI:test://host/0"),
        MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  EXPECT_THAT(Fails(), HasSubstr("its certificate is refused: "));
  // It says so, and host 1 hears it.
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].why, UnauthenticatedEnd::kNotTrusted);
  EXPECT_THAT(said_[0].detail, HasSubstr("unknown ca"));
}

// FTL1. Host 0 trusts host 1.
TEST_P(TlsPeersTest, PeerThatShowsAnothersCertificateIsNotLetIn) {
  const TestAuthority other("others");
  TlsTexts texts =
      TlsTextsFor(TestNodeAuthority(), other.IssueFor("URI:test://host/0"));
  const auto made = TlsSettings::Make(texts);
  ASSERT_TRUE(made.ok()) << made.status();
  Start(*made, MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  Fails();
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].why, UnauthenticatedEnd::kNotTrusted);
  EXPECT_THAT(said_[0].detail, HasSubstr("its certificate is refused: "));
}

TEST_P(TlsPeersTest, ExpiredCertificateIsRefused) {
  Start(MakeTls(TestNodeAuthority(), "URI:test://host/0", kYear2000, kYear2001),
        MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  Fails();
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0].detail, HasSubstr("expired"));
}

TEST_P(TlsPeersTest, PeerThatDoesNotEncryptIsNotTrusted) {
  Start(nullptr, MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  Fails();
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].why, UnauthenticatedEnd::kNotTrusted);
  EXPECT_THAT(said_[0].detail, HasSubstr("TLS: "));
}

TEST_P(TlsPeersTest, PeerThatEncryptsIsNotUnderstoodWithoutTls) {
  Start(MakeTls(TestNodeAuthority(), "URI:test://host/0"), nullptr);
  EXPECT_THAT(Fails(), HasSubstr("ended the connection"));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].why, UnauthenticatedEnd::kNotUnderstood);
  EXPECT_EQ(said_[0].detail, "");
}

std::string NameOfSockets(const ::testing::TestParamInfo<bool>& shares) {
  return shares.param ? "Shared" : "Own";
}

INSTANTIATE_TEST_SUITE_P(Sockets, TlsPeersTest, ::testing::Bool(),
                         NameOfSockets);

// --- Revoked certificates ----------------------------------------------------

class TlsRevokedTest : public TlsPeersTest {
 protected:
  static void ExpectRevoked(const std::vector<Said>& said,
                            const std::string& detail) {
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(said[0].why, UnauthenticatedEnd::kNotTrusted);
    EXPECT_THAT(said[0].detail, HasSubstr(detail));
  }
  // A write of host 0 arrives.
  void Write() {
    const size_t before = completed_[0];
    ASSERT_TRUE(fabrics_[0]
                    ->PostWrite(at_[0], fabric::WorkId(before),
                                Local(0, 0, 1000), {key_[1], 0})
                    .ok());
    Until([&] { return completed_[0] == before + 1; });
  }
  // The hosts ask for their settings again.
  void PassASecond() {
    clock_.Forward(1'000'000'000);
    for (int turn = 0; turn < 10; ++turn) Turn();
  }

  const TestAuthority& authority_ = TestNodeAuthority();
  const TestCertificate own_[2] = {authority_.IssueFor("URI:test://host/0"),
                                   authority_.IssueFor("URI:test://host/1")};
  const std::string nobody_ = authority_.Revoke({});
};

INSTANTIATE_TEST_SUITE_P(Sockets, TlsRevokedTest, ::testing::Bool(),
                         NameOfSockets);

// FTL6.
TEST_P(TlsRevokedTest, PeerThatConnectsIsRefused) {
  Start(With(nobody_, own_[0]),
        With(authority_.Revoke({own_[0].certificate}), own_[1]));
  Fails();
  ExpectRevoked(said_, "its certificate is refused: certificate revoked");
}

TEST_P(TlsRevokedTest, PeerThatListensIsRefused) {
  Start(With(authority_.Revoke({own_[1].certificate}), own_[0]),
        With(nobody_, own_[1]));
  EXPECT_THAT(Fails(),
              HasSubstr("its certificate is refused: certificate revoked"));
  ExpectRevoked(said_, "certificate revoked");
}

TEST_P(TlsRevokedTest, OthersAreLetIn) {
  const TestCertificate third = authority_.IssueFor("URI:test://host/3");
  const std::string list = authority_.Revoke({third.certificate});
  Start(With(list, own_[0]), With(list, own_[1]));
  Connect();
  Write();
  EXPECT_THAT(said_, IsEmpty());
}

// FTL6. Host 0 has its certificate from an authority between.
TEST_P(TlsRevokedTest, PeerWhoseIssuerIsRevokedIsRefused) {
  const TestAuthority between("between", authority_);
  const TestCertificate own = between.IssueFor("URI:test://host/0");
  const std::string list = authority_.Revoke({between.certificate()});
  Start(With(nobody_, own), With(list + between.Revoke({}), own_[1]));
  Fails();
  ExpectRevoked(said_, "its certificate is refused: certificate revoked");
}

TEST_P(TlsRevokedTest, PeerWhoseIssuerHasNoListIsRefused) {
  const TestAuthority between("between", authority_);
  const TestCertificate own = between.IssueFor("URI:test://host/0");
  Start(With(nobody_, own), With(nobody_, own_[1]));
  Fails();
  ExpectRevoked(said_, "there is no list of what its issuer has revoked");
}

// FTL7.
TEST_P(TlsRevokedTest, ListThatHasExpiredLetsOthersIn) {
  const std::string list = authority_.Revoke({}, kYear2000, kYear2001);
  Start(With(list, own_[0]), With(list, own_[1]));
  Connect();
  Write();
}

// FTL7.
TEST_P(TlsRevokedTest, ListThatHasExpiredRefusesThoseItNames) {
  const std::string list =
      authority_.Revoke({own_[0].certificate}, kYear2000, kYear2001);
  Start(With(nobody_, own_[0]), With(list, own_[1]));
  Fails();
  ExpectRevoked(said_, "its certificate is refused: certificate revoked");
}

// --- Settings that are replaced ----------------------------------------------

// TF11. Hosts that know each other only by their new authority connect by it.
TEST_P(TlsRevokedTest, NewConnectionsBeginWithNewSettingsAndOldOnesGoOn) {
  Start(With(nobody_, own_[0]), With(nobody_, own_[1]));
  Connect();
  Write();
  const TestAuthority next("next");
  for (int host = 0; host < 2; ++host) {
    tls_[host] =
        MakeTls(next, host == 0 ? "URI:test://new/0" : "URI:test://new/1");
  }
  Write();
  PassASecond();
  Write();
  const fabric::ConnectionId first[2] = {at_[0], at_[1]};
  events_[0].clear();
  events_[1].clear();
  Connect();
  EXPECT_EQ(Await(1, Kind::kRequested).peer_name, "test://new/0");
  EXPECT_EQ(Await(0, Kind::kEstablished).peer_name, "test://new/1");
  Write();
  std::ranges::copy(first, at_);
  Write();
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(said_by_0_, IsEmpty());
}

// TF11.
TEST_P(TlsRevokedTest, ConnectionOfAPeerThatIsRevokedEnds) {
  Start(With(nobody_, own_[0]), With(nobody_, own_[1]));
  Connect();
  Write();
  tls_[1] = With(authority_.Revoke({own_[0].certificate}), own_[1]);
  PassASecond();
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_EQ(Await(1, Kind::kDisconnected).connection, at_[1]);
  EXPECT_EQ(Await(0, Kind::kDisconnected).connection, at_[0]);
  ExpectRevoked(said_,
                "its certificate, of test://host/0, has been revoked since it "
                "connected");
  events_[0].clear();
  events_[1].clear();
  said_.clear();
  Fails();
  ExpectRevoked(said_, "its certificate is refused: certificate revoked");
}

TEST_P(TlsRevokedTest, ConnectionToAPeerThatIsRevokedEnds) {
  Start(With(nobody_, own_[0]), With(nobody_, own_[1]));
  Connect();
  Write();
  tls_[0] = With(authority_.Revoke({own_[1].certificate}), own_[0]);
  PassASecond();
  ASSERT_THAT(said_by_0_, SizeIs(1));
  EXPECT_EQ(Await(0, Kind::kDisconnected).connection, at_[0]);
  ExpectRevoked(said_by_0_, "has been revoked since it connected");
}

// The handshake began with the list of before.
TEST_P(TlsRevokedTest, PeerThatIsRevokedWhileItShakesHandsIsNotLetIn) {
  Start(With(nobody_, own_[0]), With(nobody_, own_[1]));
  at_[0] = *fabrics_[0]->Connect(address_, "hello", Deadline());
  std::array<fabric::Completion, 1> none;
  const int asked = asked_[1];
  while (asked_[1] == asked) fabrics_[1]->Poll(none, &events_[1]);
  tls_[1] = With(authority_.Revoke({own_[0].certificate}), own_[1]);
  clock_.Forward(1'000'000'000);
  fabrics_[1]->Poll(none, &events_[1]);
  Until([&] { return !events_[0].empty() || !events_[1].empty(); });
  ExpectRevoked(said_, "has been revoked since it connected");
  EXPECT_THAT(events_[1], IsEmpty());
}

// The same at the side that connects.
TEST_P(TlsRevokedTest, PeerThatIsRevokedWhileThisSideShakesHandsIsLeft) {
  Start(With(nobody_, own_[0]), With(nobody_, own_[1]));
  ASSERT_TRUE(fabrics_[0]->Connect(address_, "hello", Deadline()).ok());
  tls_[0] = With(authority_.Revoke({own_[1].certificate}), own_[0]);
  clock_.Forward(1'000'000'000);
  std::array<fabric::Completion, 1> none;
  fabrics_[0]->Poll(none, &events_[0]);
  const ConnectionEvent event = Await(0, Kind::kUnreachable);
  EXPECT_THAT(event.why, HasSubstr("has been revoked since it connected"));
  ExpectRevoked(said_by_0_, "has been revoked since it connected");
  EXPECT_THAT(events_[1], IsEmpty());
}

// A peer that begins a handshake, and says nothing more.
TEST_P(TlsPeersTest, HandshakeThatDoesNotEndIsEnded) {
  Start(nullptr, MakeTls(TestNodeAuthority(), "URI:test://host/1"));
  const auto raw = fabric::tcp::StartConnect(address_, "127.0.0.3");
  ASSERT_TRUE(raw.ok()) << raw.status();
  for (int turn = 0; said_.empty(); ++turn) {
    std::array<fabric::Completion, 1> none;
    fabrics_[1]->Poll(none, &events_[1]);
    if (turn > 100) clock_.Forward(100'000'000);
  }
  EXPECT_EQ(said_[0].why, UnauthenticatedEnd::kSaidNothing);
  EXPECT_THAT(events_[1], IsEmpty());
}

// --- Lanes -------------------------------------------------------------------

// Connections that share a socket, which began with settings of before.
class TlsLanesTest : public TlsRevokedTest {
 protected:
  struct Ends {
    fabric::ConnectionId here;
    fabric::ConnectionId there;
  };

  void SetUp() override {
    Start(With(nobody_, own_[0]), With(nobody_, own_[1]));
    Connect();
    first_ = {at_[0], at_[1]};
  }
  // Connects once more.
  Ends ConnectAgain() {
    events_[0].clear();
    events_[1].clear();
    Connect();
    return {at_[0], at_[1]};
  }
  void ExpectFirstGoesOn() {
    at_[0] = first_.here;
    Write();
  }
  uint64_t Sockets() { return fabrics_[1]->counters().sockets; }

  Ends first_;
};

INSTANTIATE_TEST_SUITE_P(Sockets, TlsLanesTest, ::testing::Values(true),
                         NameOfSockets);

// TF11: the socket's certificate is that of all of its connections.
TEST_P(TlsLanesTest, AllConnectionsOfAPeerThatIsRevokedEnd) {
  const Ends second = ConnectAgain();
  ASSERT_EQ(Sockets(), 1u);
  tls_[1] = With(authority_.Revoke({own_[0].certificate}), own_[1]);
  PassASecond();
  ExpectRevoked(said_, "has been revoked since it connected");
  for (const int host : {0, 1}) {
    std::vector<fabric::ConnectionId> ended;
    for (const ConnectionEvent& event : events_[host]) {
      if (event.kind == Kind::kDisconnected) ended.push_back(event.connection);
    }
    const std::vector<fabric::ConnectionId> all =
        host == 0 ? std::vector{first_.here, second.here}
                  : std::vector{first_.there, second.there};
    EXPECT_EQ(ended, all);
  }
}

// TRK7. The side that connects shows its new certificate.
TEST_P(TlsLanesTest, NewSettingsOfTheSideThatConnectsTakeANewSocket) {
  tls_[0] = MakeTls(authority_, "URI:test://new/0");
  ConnectAgain();
  EXPECT_EQ(Await(1, Kind::kRequested).peer_name, "test://new/0");
  EXPECT_EQ(Sockets(), 2u);
  ConnectAgain();
  EXPECT_EQ(Sockets(), 2u);
  ExpectFirstGoesOn();
}

// TRK7. A list that was only renewed ends nothing, and refuses nobody.
TEST_P(TlsLanesTest, PeerThatNewSettingsWouldLetInConnectsAsBefore) {
  tls_[1] = With(authority_.Revoke({}), own_[1]);
  PassASecond();
  ConnectAgain();
  EXPECT_EQ(Sockets(), 1u);
  EXPECT_THAT(said_, IsEmpty());
  Write();
}

// TRK7, TRK6. The list that expires goes on (FTL7).
TEST_P(TlsLanesTest, PeerThatAnExpiredListDoesNotNameConnectsAsBefore) {
  tls_[1] = With(authority_.Revoke({}, kYear2000, kYear2001), own_[1]);
  PassASecond();
  ConnectAgain();
  EXPECT_EQ(Sockets(), 1u);
}

// TRK7, TRK6. What is open goes on, as with sockets of their own.
TEST_P(TlsLanesTest, PeerWhoseAuthorityIsTrustedNoMoreOpensNoConnection) {
  const TestAuthority next("next");
  tls_[1] = MakeTls(next, "URI:test://host/1");
  events_[0].clear();
  events_[1].clear();
  Fails();
  ExpectRevoked(said_, "the certificate of test://host/0 is good no more");
  said_.clear();
  ExpectFirstGoesOn();
  // The next one takes a socket of its own, and is told why.
  events_[0].clear();
  EXPECT_THAT(Fails(), HasSubstr("its certificate is refused: "));
  ExpectFirstGoesOn();
}

}  // namespace
}  // namespace alpheus::testing
