// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/crypto.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "log/base/bytes.h"

namespace alpheus::rpc {
namespace {

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

}  // namespace
}  // namespace alpheus::rpc
