// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/crypto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::rpc {
namespace {

using ::testing::HasSubstr;
using testing::kYear2000;
using testing::kYear2001;
using testing::kYear2002;
using testing::kYear2900;
using testing::TestAuthority;
using testing::TestCertificate;

// As `printf abc | sha256sum` says.
TEST(CryptoTest, DigestsAsOthersDo) {
  const auto hex = [](std::string_view text) {
    const std::string digest(AsText(Sha256(text)));
    return absl::BytesToHexString(digest);
  };
  EXPECT_EQ(hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

class CertificateTest : public ::testing::Test {
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

TEST_F(CertificateTest, PairIsGood) {
  EXPECT_TRUE(Check(good_.certificate, good_.key).ok());
  EXPECT_TRUE(Check(good_.certificate + ca_.certificate(), good_.key).ok());
  EXPECT_TRUE(Check("Bag: node\n" + good_.certificate, good_.key).ok());
}

TEST_F(CertificateTest, TextThatIsNoneIsRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  Expect(Check("", good_.key), invalid, "the chain: no certificate");
  Expect(Check(good_.key, good_.key), invalid, "the chain: no certificate");
  Expect(Check(good_.certificate.substr(0, 200), good_.key), invalid,
         "no certificate");
  Expect(Check(good_.certificate + ca_.certificate().substr(0, 200), good_.key),
         invalid, "the chain: certificate 2 is cut off or damaged");
  Expect(Check(good_.certificate, ""), invalid, "the key: no private key");
  Expect(Check(good_.certificate, good_.key.substr(0, 100)), invalid,
         "the key: no private key");
  Expect(Check(good_.certificate, testing::LockedKey()), invalid,
         "the key has a passphrase");
}

TEST_F(CertificateTest, KeyOfAnotherIsRefused) {
  const TestCertificate other = ca_.Issue("node");
  Expect(Check(good_.certificate, other.key),
         absl::StatusCode::kInvalidArgument,
         "the key: this is the key of another certificate than that of "
         "\"CN=node\", the first in the chain");
  // The node's own one comes first.
  EXPECT_FALSE(Check(ca_.certificate() + good_.certificate, good_.key).ok());
}

TEST_F(CertificateTest, DatesAreJudged) {
  const auto failed = absl::StatusCode::kFailedPrecondition;
  EXPECT_TRUE(Check(good_.certificate, good_.key, kYear2000).ok());
  Expect(Check(good_.certificate, good_.key, kYear2000 - 1), failed,
         "is not valid before Jan  1 00:00:00 2000 GMT");
  Expect(Check(good_.certificate, good_.key, kYear2002 + 1), failed,
         "has expired at Jan  1 00:00:00 2002 GMT");
  // An issuer's, too.
  const TestAuthority brief("brief", kYear2001);
  const TestCertificate child = brief.Issue("node");
  Expect(Check(child.certificate + brief.certificate(), child.key, kYear2002),
         failed, "the certificate of \"CN=brief\" has expired");
}

TEST_F(CertificateTest, OneAuthorityThatIsValidIsEnough) {
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

}  // namespace
}  // namespace alpheus::rpc
