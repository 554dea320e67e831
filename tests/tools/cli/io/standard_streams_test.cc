// SPDX-License-Identifier: Apache-2.0
// The programs wait for bytes on standard input until the end or a stop, and
// write all or say why not.
#include "tools/cli/io/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tools/nemesis/processes/child_process.h"

namespace alpheus::cli {
namespace {

using ::alpheus::demo::OwnedFd;

class InputTest : public ::testing::Test {
 protected:
  struct Pipe {
    Pipe() {
      std::array<int, 2> fds = {-1, -1};
      EXPECT_EQ(pipe(fds.data()), 0);
      read = OwnedFd(fds[0]);
      write = OwnedFd(fds[1]);
    }
    void Put(const std::string& bytes) const {
      EXPECT_TRUE(WriteAll(write.get(), bytes).ok());
    }
    OwnedFd read;
    OwnedFd write;
  };

  Pipe input_;
  Pipe stop_;
};

TEST_F(InputTest, BytesComeUntilTheEnd) {
  Input input(input_.read.get(), stop_.read.get());
  input_.Put("bytes");
  input_.write.Close();
  auto bytes = input.Peek();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "bytes");
  input.Consume(5);
  bytes = input.Peek();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "");
}

// Nothing is ever written to the input: only the stop can end the wait.
TEST_F(InputTest, StopEndsTheWaitForInput) {
  Input input(input_.read.get(), stop_.read.get());
  stop_.Put("!");
  EXPECT_TRUE(absl::IsCancelled(input.Peek().status()));
}

TEST_F(InputTest, WhatWasReadBeforeTheStopIsStillThere) {
  Input input(input_.read.get(), stop_.read.get());
  input_.Put("bytes");
  ASSERT_TRUE(input.Peek().ok());
  stop_.Put("!");
  input.Consume(2);
  const auto bytes = input.Peek();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "tes");
}

// The sentence names what could not be written, and what to do for that one.
TEST(WriteAllTest, FailureNamesTheFile) {
  const OwnedFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(WriteAll(full.get(), "x"),
            absl::ResourceExhaustedError(
                "standard output: write failed: No space left on device; free "
                "space and run the command again"));
  EXPECT_EQ(WriteAll(full.get(), "x", "a file"),
            absl::ResourceExhaustedError(
                "a file: write failed: No space left on device; free space and "
                "run the command again"));
  EXPECT_EQ(WriteAll(-1, "x", "a file"),
            absl::FailedPreconditionError("a file: write failed: Bad file "
                                          "descriptor; see the kernel's log"));
  EXPECT_EQ(WriteAll(-1, "x"),
            absl::FailedPreconditionError(
                "standard output: write failed: Bad file descriptor; give the "
                "command an open standard output"));
}

}  // namespace
}  // namespace alpheus::cli
