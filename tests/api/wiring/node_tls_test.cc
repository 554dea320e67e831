// SPDX-License-Identifier: Apache-2.0
// The files of a running process: when new ones are taken, and what is said.
#include "api/wiring/node_tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "log/base/ids.h"
#include "log/base/wall_clock.h"
#include "quorum/members/uuid_text.h"
#include "replication/fabric/tcp/tls.h"
#include "tests/replication/fabric/tcp/tcp_world.h"
#include "tests/support/fixtures/fake_wall_clock.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::testing {
namespace {

using fabric::tcp::TlsSettings;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kClusterId[] = "9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a";
constexpr int64_t kDay = 86'400;

class NodeTlsTest : public ::testing::Test {
 protected:
  // Puts a text in place as an operator should: whole, at once.
  void Put(const std::string& file, const std::string& text,
           mode_t mode = 0600) {
    const std::string path = directory_.File(file);
    std::ofstream(path + ".new") << text;
    ASSERT_EQ(chmod((path + ".new").c_str(), mode), 0);
    ASSERT_EQ(rename((path + ".new").c_str(), path.c_str()), 0);
  }
  // The same in the file that is there already.
  void Overwrite(const std::string& file, const std::string& text) {
    std::ofstream(directory_.File(file)) << text;
  }
  TestCertificate Issue(int64_t begin_s = kYear2000,
                        int64_t end_s = kYear2999) const {
    return authority_.IssueFor(
        std::string("URI:alpheus://") + kClusterId + "/node/1", begin_s, end_s);
  }
  void PutOwn(const TestCertificate& own) {
    Put("node-1.pem", own.certificate);
    Put("node-1.key", own.key);
  }
  void PutAll() {
    own_ = Issue();
    PutOwn(own_);
    Put("authorities.pem", authority_.certificate());
    Put("revoked.pem", authority_.Revoke({}));
  }
  absl::StatusOr<std::shared_ptr<NodeTls>> Load() {
    return NodeTls::Load(
        {.authorities_file = directory_.File("authorities.pem"),
         .certificate_file = directory_.File("node-{node}.pem"),
         .key_file = directory_.File("node-{node}.key"),
         .revoked_file = directory_.File("revoked.pem")},
        *quorum::ParseUuid(kClusterId), NodeId(1),
        [this](const std::string& sentence) { said_.push_back(sentence); },
        clock_, wall_clock_);
  }
  void MustLoad() {
    auto loaded = Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    tls_ = *std::move(loaded);
    first_ = tls_->Current();
    EXPECT_THAT(said_, IsEmpty());
  }
  void MustRefuse(absl::StatusCode code, const std::string& why) {
    const auto loaded = Load();
    EXPECT_EQ(loaded.status().code(), code) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(why));
  }
  std::shared_ptr<const TlsSettings> Later() {
    clock_.Forward(NodeTls::kLookNanos);
    return tls_->Current();
  }

  TempDirectory directory_;
  HandClock clock_;
  FakeWallClock wall_clock_{kYear2002};
  const TestAuthority authority_{"nodes"};
  TestCertificate own_;
  std::vector<std::string> said_;
  std::shared_ptr<NodeTls> tls_;
  std::shared_ptr<const TlsSettings> first_;
};

TEST_F(NodeTlsTest, ReplacedFilesAreTakenAtTheNextLook) {
  PutAll();
  MustLoad();
  EXPECT_EQ(Later(), first_);
  PutOwn(Issue(kYear2000, kYear2900));
  EXPECT_EQ(tls_->Current(), first_);  // NTL3
  const auto second = Later();
  EXPECT_NE(second, first_);
  EXPECT_EQ(second->own_validity().end_s, kYear2900);
  EXPECT_EQ(tls_->end_s(), kYear2900);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("its files were read again"),
                                       HasSubstr("node-1.pem is good until "
                                                 "2900-01-01 00:00 UTC"))));
  EXPECT_EQ(Later(), second);
  EXPECT_EQ(said_.size(), 1u);
}

// Each file is looked at.
TEST_F(NodeTlsTest, AuthoritiesAndListsAreReplacedToo) {
  PutAll();
  MustLoad();
  const TestAuthority other("others");
  Put("authorities.pem", authority_.certificate() + other.certificate());
  EXPECT_EQ(Later(), first_);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("0 lists are of \"CN=others\"")));
  Put("revoked.pem", authority_.Revoke({}) + other.Revoke({}));
  const auto second = Later();
  EXPECT_NE(second, first_);
  Overwrite("revoked.pem", authority_.Revoke({own_.certificate}) +
                               other.Revoke({own_.certificate}));
  EXPECT_NE(Later(), second);
}

// NTL1, NTL2.
TEST_F(NodeTlsTest, FilesThatAreNotAllReplacedYetAreNotTaken) {
  PutAll();
  MustLoad();
  const TestCertificate next = Issue(kYear2000, kYear2900);
  const std::string& text = next.certificate;
  Overwrite("node-1.pem", "");
  EXPECT_EQ(Later(), first_);
  EXPECT_EQ(said_.size(), 1u);
  Overwrite("node-1.pem", text.substr(0, text.size() / 2));
  EXPECT_EQ(Later(), first_);
  EXPECT_EQ(said_.size(), 2u);
  Overwrite("node-1.pem", text);
  for (int look = 0; look < 3; ++look) EXPECT_EQ(Later(), first_);
  ASSERT_EQ(said_.size(), 3u);  // once each
  EXPECT_THAT(said_[2], AllOf(HasSubstr("the files of before are kept: key"),
                              HasSubstr("node-1.key")));
  Overwrite("node-1.key", next.key);
  EXPECT_EQ(Later()->own_validity().end_s, kYear2900);
}

// NTL2.
TEST_F(NodeTlsTest, FilesThatAreNotGoodYetAreTakenOnceTheyAre) {
  PutAll();
  MustLoad();
  PutOwn(Issue(kYear2002 + kDay, kYear2900));
  EXPECT_EQ(Later(), first_);
  EXPECT_EQ(Later(), first_);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("is not good before 2002-01-02")));
  wall_clock_.Set(kYear2002 + kDay);
  EXPECT_EQ(Later()->own_validity().end_s, kYear2900);
}

TEST_F(NodeTlsTest, FilesOfNoUseKeepThoseOfBeforeAndAreSaid) {
  PutAll();
  MustLoad();
  const auto must_keep = [&](const std::string& why) {
    said_.clear();
    EXPECT_EQ(Later(), first_) << why;
    EXPECT_THAT(said_,
                ElementsAre(AllOf(HasSubstr("the files of before are kept: "),
                                  HasSubstr(why))));
    PutOwn(own_);
    Put("revoked.pem", authority_.Revoke({}));
  };
  PutOwn(Issue(kYear2000, kYear2001));
  must_keep("or one behind it, has expired at 2001-01-01");
  PutOwn(Issue(kYear2900, kYear2999));
  must_keep("is not good before 2900-01-01");
  Put("node-1.key", own_.key, 0644);
  must_keep("has mode 644");
  PutOwn(authority_.IssueFor(std::string("URI:alpheus://") + kClusterId +
                             "/node/2"));
  must_keep("is that of node 2, not of node 1");
  Put("revoked.pem", authority_.Revoke({}, kYear2000, kYear2001));
  must_keep("revoked.pem: a list has expired at 2001-01-01");
  Put("revoked.pem", authority_.Revoke({}, kYear2900, kYear2999));
  must_keep("revoked.pem: a list is not good before 2900-01-01");
  Put("revoked.pem", "nothing");
  must_keep("all of them whole");
  ASSERT_EQ(unlink(directory_.File("revoked.pem").c_str()), 0);
  must_keep("revoked.pem can't be opened");
}

TEST_F(NodeTlsTest, StartNeedsFilesOfUse) {
  PutAll();
  ASSERT_EQ(unlink(directory_.File("revoked.pem").c_str()), 0);
  MustRefuse(absl::StatusCode::kNotFound, "revoked.pem can't be opened");
  Put("revoked.pem", authority_.Revoke({}, kYear2000, kYear2001));
  MustRefuse(absl::StatusCode::kFailedPrecondition, "a list has expired");
  Put("revoked.pem", "nothing");
  MustRefuse(absl::StatusCode::kInvalidArgument, "all of them whole");
  Put("revoked.pem", authority_.Revoke({own_.certificate}));
  MustRefuse(absl::StatusCode::kFailedPrecondition,
             "node-1.pem: it is revoked, by revoked certificates");  // NTL4
  Put("revoked.pem", authority_.Revoke({}));
  PutOwn(Issue(kYear2000, kYear2001));
  MustRefuse(absl::StatusCode::kFailedPrecondition, "has expired at");
  PutOwn(Issue(kYear2900, kYear2999));
  MustRefuse(absl::StatusCode::kFailedPrecondition, "is not good before");
}

// NTL4.
TEST_F(NodeTlsTest, ListThatNamesTheProcessItselfIsTaken) {
  PutAll();
  MustLoad();
  Put("revoked.pem", authority_.Revoke({own_.certificate}));
  EXPECT_TRUE(Later()->is_own_revoked());
  EXPECT_THAT(said_, ElementsAre(HasSubstr("were read again"),
                                 AllOf(HasSubstr("is revoked, by"),
                                       HasSubstr("others refuse it"))));
}

TEST_F(NodeTlsTest, ReloadReadsAtOnceAndSaysAgain) {
  PutAll();
  MustLoad();
  tls_->Reload();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("were read again")));
  Put("node-1.key", "nothing");
  for (int reload = 0; reload < 2; ++reload) {
    said_.clear();
    tls_->Reload();
    EXPECT_THAT(said_, ElementsAre(HasSubstr("kept: key")));
  }
}

TEST_F(NodeTlsTest, EndOfCertificateIsSaidBeforeOnceADay) {
  PutAll();
  constexpr int64_t kEnd = kYear2002 + 30 * kDay;
  PutOwn(Issue(kYear2000, kEnd));
  MustLoad();
  wall_clock_.Set(kEnd - NodeTls::kWarnBeforeSeconds - 1);
  Later();
  EXPECT_THAT(said_, IsEmpty());
  wall_clock_.Set(kEnd - NodeTls::kWarnBeforeSeconds);
  Later();
  wall_clock_.Set(kEnd - NodeTls::kWarnBeforeSeconds + kDay - 1);
  Later();
  EXPECT_THAT(said_,
              ElementsAre(HasSubstr("node-1.pem expires at 2002-01-31 00:00")));
  wall_clock_.Set(kEnd);
  EXPECT_EQ(Later(), first_);
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_THAT(said_[1], HasSubstr("node-1.pem has expired at 2002-01-31"));
  said_.clear();
  // A process that starts says so, too.
  wall_clock_.Set(kEnd - kDay);
  EXPECT_TRUE(Load().ok());
  EXPECT_THAT(said_, ElementsAre(HasSubstr("expires at")));
}

// FTL7.
TEST_F(NodeTlsTest, ListThatExpiresIsUsedOn) {
  PutAll();
  Put("revoked.pem", authority_.Revoke({}, kYear2000, kYear2002 + kDay));
  MustLoad();
  wall_clock_.Set(kYear2002 + kDay);
  EXPECT_EQ(Later(), first_);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("revoked.pem has expired at"),
                                       HasSubstr("it is used on"))));
}

}  // namespace
}  // namespace alpheus::testing
