// SPDX-License-Identifier: Apache-2.0
// The examples of docs/use/operating.md, run. Each of its cpp blocks stands
// here verbatim, which .ci/lint.py checks; a test below calls it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/client/grpc/log_client.h"
#include "api/client/grpc/log_reader.h"
#include "tests/api/grpc/server_fixture.h"

namespace {

absl::StatusOr<std::string> AppendAndRead(
    const std::vector<std::string>& addresses) {
  alpheus::client::LogClientOptions options;
  options.addresses = addresses;  // of all nodes: "10.0.0.1:7411" and so on
  auto log = alpheus::client::LogClient::Start(options);
  if (!log.ok()) return log.status();
  auto appended = (*log)->Append({.parts = {"hello"}});  // durable, if OK
  if (!appended.ok()) return appended.status();
  auto reader = alpheus::client::LogReader::Start(options, {});
  if (!reader.ok()) return reader.status();
  auto record = (*reader)->Next();  // waits for one
  if (!record.ok()) return record.status();
  return (*record)->parts.front();
}

using OperatingGuideTest = alpheus::testing::ServerTest;

TEST_F(OperatingGuideTest, ClientAppendsAndReads) {
  const auto read = AppendAndRead({server_->address()});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, "hello");
}

}  // namespace
