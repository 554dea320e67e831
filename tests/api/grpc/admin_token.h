// SPDX-License-Identifier: Apache-2.0
// admin_token: a file with the token of an administrator of all logs.
#ifndef ALPHEUS_TESTS_API_GRPC_ADMIN_TOKEN_H_
#define ALPHEUS_TESTS_API_GRPC_ADMIN_TOKEN_H_

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "api/grpc/access/token_file.h"
#include "log/base/random.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {

class AdminToken {
 public:
  AdminToken() {
    EntropyRandom random;
    const auto made =
        rpc::MakeToken("admin", {"append", "read", "admin"}, {"*"}, "", random);
    EXPECT_TRUE(made.ok()) << made.status();
    token_ = made->token;
    const absl::Status added = rpc::AddToTokenFile(file(), made->entry);
    EXPECT_TRUE(added.ok()) << added;
  }

  std::string file() const { return directory_.File("tokens.toml"); }
  const std::string& token() const { return token_; }
  // Has a call show it.
  void Show(grpc::ClientContext* context) const {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", token_));
  }

 private:
  const TempDirectory directory_;
  std::string token_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_GRPC_ADMIN_TOKEN_H_
