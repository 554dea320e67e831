// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;
using testing::kYear2000;
using testing::kYear2001;
using testing::kYear2002;
using testing::kYear2900;
using testing::TestAuthority;
using testing::TestCertificate;

class CertificatesTest : public ::testing::Test {
 protected:
  static void Expect(const absl::Status& status, absl::StatusCode code,
                     const std::string& why) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  static absl::Status Check(const std::string& chain, const std::string& key,
                            int64_t now_s = kYear2001) {
    return CheckCertificate({"the chain", chain}, {"the key", key}, now_s);
  }

  const TestAuthority ca_{"test authority", kYear2900};
  const TestCertificate good_ = ca_.Issue("node", kYear2000, kYear2002);
};

TEST_F(CertificatesTest, PairIsGood) {
  EXPECT_TRUE(Check(good_.certificate, good_.key).ok());
  EXPECT_TRUE(Check(good_.certificate + ca_.certificate(), good_.key).ok());
  EXPECT_TRUE(Check("Bag: node\n" + good_.certificate, good_.key).ok());
}

TEST_F(CertificatesTest, TextThatIsNoneIsRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  Expect(Check("", good_.key), invalid, "the chain: no certificate");
  Expect(Check(good_.key, good_.key), invalid, "the chain: no certificate");
  Expect(Check(good_.certificate.substr(0, 200), good_.key), invalid,
         "the chain: certificate 1 is cut off or damaged");
  Expect(Check(good_.certificate + ca_.certificate().substr(0, 200), good_.key),
         invalid, "the chain: certificate 2 is cut off or damaged");
  Expect(Check(good_.certificate, ""), invalid, "the key: no private key");
  Expect(Check(good_.certificate, good_.key.substr(0, 100)), invalid,
         "the key: no private key");
  Expect(Check(good_.certificate, testing::LockedKey()), invalid,
         "the key has a passphrase");
}

TEST_F(CertificatesTest, KeyOfAnotherIsRefused) {
  const TestCertificate other = ca_.Issue("node");
  Expect(Check(good_.certificate, other.key),
         absl::StatusCode::kInvalidArgument,
         "the key: this is the key of another certificate than that of "
         "\"CN=node\", the first in the chain");
  // The node's own one comes first.
  EXPECT_FALSE(Check(ca_.certificate() + good_.certificate, good_.key).ok());
}

TEST_F(CertificatesTest, DatesAreJudged) {
  const auto failed = absl::StatusCode::kFailedPrecondition;
  EXPECT_TRUE(Check(good_.certificate, good_.key, kYear2000).ok());
  Expect(Check(good_.certificate, good_.key, kYear2000 - 1), failed,
         "is not good before 2000-01-01 00:00 UTC");
  Expect(Check(good_.certificate, good_.key, kYear2002), failed,
         "has expired at 2002-01-01 00:00 UTC");
  // An issuer's, too.
  const TestAuthority brief("brief", kYear2001);
  const TestCertificate child = brief.Issue("node");
  Expect(Check(child.certificate + brief.certificate(), child.key, kYear2002),
         failed, "the certificate of \"CN=brief\" has expired");
}

TEST_F(CertificatesTest, OneAuthorityThatIsValidIsEnough) {
  const TestAuthority old("old", kYear2001);
  const auto check = [](const std::string& text) {
    return CheckAuthorities({"the file", text}, kYear2002);
  };
  EXPECT_TRUE(check(ca_.certificate()).ok());
  EXPECT_TRUE(check(old.certificate() + ca_.certificate()).ok());
  Expect(check(old.certificate()), absl::StatusCode::kFailedPrecondition,
         "the certificate of \"CN=old\" has expired");
  Expect(check(""), absl::StatusCode::kInvalidArgument,
         "the file: no certificate");
  Expect(check(ca_.certificate() + old.certificate().substr(0, 99)),
         absl::StatusCode::kInvalidArgument, "certificate 2 is cut off");
}

// The last second is no good one, and the first is.
TEST_F(CertificatesTest, ValidityIsThatOfAllTogether) {
  const auto read =
      ReadCertificates({"the file", good_.certificate + ca_.certificate()});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(SubjectOf(read->back().get()), "CN=test authority");
  Validity validity;
  EXPECT_TRUE(CheckIsGood(validity, 0, "it", "Make one").ok());
  for (const Certificate& one : *read) validity.Narrow(ValidityOf(one.get()));
  EXPECT_EQ(validity.begin_s, kYear2000);
  EXPECT_EQ(validity.end_s, kYear2002);
  EXPECT_TRUE(CheckIsGood(validity, kYear2000, "it", "Make one").ok());
  EXPECT_TRUE(CheckIsGood(validity, kYear2002 - 1, "it", "Make one").ok());
  Expect(CheckIsGood(validity, kYear2002, "it", "Make one"),
         absl::StatusCode::kFailedPrecondition,
         "it has expired at 2002-01-01 00:00 UTC. Make one");
}

}  // namespace
}  // namespace alpheus::quorum
