// SPDX-License-Identifier: Apache-2.0
// test_tls: what adapters of a test encrypt with, and whether the kernel can.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TEST_TLS_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TEST_TLS_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "replication/fabric/tcp/tls.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::testing {

// One that all hosts of a test trust.
inline const TestAuthority& TestNodeAuthority() {
  static const auto* const authority = new TestAuthority("nodes");
  return *authority;
}

inline fabric::tcp::TlsTexts TlsTextsFor(const TestAuthority& authority,
                                         const TestCertificate& own) {
  fabric::tcp::TlsTexts texts;
  texts.certificate = own.certificate;
  texts.key = own.key;
  texts.authorities = authority.certificate();
  return texts;
}

// A certificate for these alternative names ("URI:..."), of an authority that
// it trusts itself.
inline std::shared_ptr<const fabric::tcp::TlsSettings> MakeTls(
    const TestAuthority& authority, const std::string& names,
    int64_t begin_s = kYear2000, int64_t end_s = kYear2999) {
  auto made = fabric::tcp::TlsSettings::Make(
      TlsTextsFor(authority, authority.IssueFor(names, begin_s, end_s)));
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// Settings for TcpFabricOptions::tls, always the same.
inline std::function<std::shared_ptr<const fabric::tcp::TlsSettings>()> Always(
    std::shared_ptr<const fabric::tcp::TlsSettings> tls) {
  return [tls] { return tls; };
}

// Returns whether this kernel has TLS, and its module is there: after the first
// session, which has it loaded where that is allowed. With ALPHEUS_KERNEL_TLS
// in the environment it must be there.
inline bool KernelHasTls() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_ulp");
  std::string name;
  while (file >> name && name != "tls") {
  }
  EXPECT_TRUE(file || std::getenv("ALPHEUS_KERNEL_TLS") == nullptr)
      << "this kernel has no module tls";
  return static_cast<bool>(file);
}

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TEST_TLS_H_
