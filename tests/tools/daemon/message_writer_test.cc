// SPDX-License-Identifier: Apache-2.0
#include "tools/daemon/message_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace alpheus::daemon {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class MessageWriterTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0); }
  void TearDown() override {
    log_.reset();
    for (const int end : ends_) close(end);
  }
  // Up to where it ends with this.
  std::string ReadUntil(const std::string& last) {
    std::string text;
    std::array<char, 4096> some;
    while (!text.ends_with(last)) {
      const ssize_t bytes = read(ends_[0], some.data(), some.size());
      if (bytes <= 0) break;
      text.append(some.data(), static_cast<size_t>(bytes));
    }
    return text;
  }

  std::array<int, 2> ends_{};
  std::unique_ptr<MessageWriter> log_;
};

TEST(FormatTimeTest, IsUtcToTheMillisecond) {
  const std::chrono::system_clock::time_point time(
      std::chrono::milliseconds(1'764'219'553'007));
  EXPECT_EQ(FormatTime(time), "2025-11-27T04:59:13.007Z");
}

TEST_F(MessageWriterTest, SentenceIsOneLineWithItsTime) {
  log_ = std::make_unique<MessageWriter>(ends_[1], "a-node");
  log_->Write("first\nand\rlast");
  const std::string line = ReadUntil("\n");
  EXPECT_EQ(line.size(), std::string("2026-11-27T05:39:13.123Z a-node: first "
                                     "and last\n")
                             .size());
  EXPECT_THAT(line, EndsWith("Z a-node: first and last\n"));
}

TEST_F(MessageWriterTest, JsonHasAnObjectALine) {
  log_ = std::make_unique<MessageWriter>(ends_[1], "a-node",
                                         MessageFormat::kJson, 7);
  log_->Write("\"first\"\nand \xff");
  const nlohmann::json line = nlohmann::json::parse(ReadUntil("\n"));
  EXPECT_EQ(line.size(), 4u);
  EXPECT_EQ(line.at("program"), "a-node");
  EXPECT_EQ(line.at("node"), 7);
  EXPECT_EQ(line.at("message"), "\"first\" and \xef\xbf\xbd");
  EXPECT_THAT(line.at("time").get<std::string>(), EndsWith("Z"));
}

// DML1: nobody reads until much more was written than a pipe and the queue
// take.
TEST_F(MessageWriterTest, WhatNobodyReadsIsDroppedAndSaidLater) {
  log_ = std::make_unique<MessageWriter>(ends_[1], "a-node");
  const std::string sentence(1000, 'x');
  for (int i = 0; i < 4000; ++i) log_->Write(sentence);
  const uint64_t dropped = log_->dropped();
  EXPECT_GT(dropped, 2000u);
  // It reads again: what is in the queue, and then how much is missing.
  std::string text;
  while (text.find("dropped here") == std::string::npos) {
    text += ReadUntil("\n");
    log_->Write("again");
  }
  EXPECT_THAT(text, HasSubstr("messages were dropped here"));
}

TEST_F(MessageWriterTest, ReaderThatStandsStillHoldsUpNoEnd) {
  log_ = std::make_unique<MessageWriter>(ends_[1], "a-node");
  for (int i = 0; i < 4000; ++i) log_->Write(std::string(1000, 'x'));
  log_.reset();  // returns
  std::array<char, 1 << 16> some;
  EXPECT_GT(read(ends_[0], some.data(), some.size()), 0);
}

// A thread that was left in a write ends when it is read, and its copy with it.
TEST_F(MessageWriterTest, DescriptorIsItsOwn) {
  log_ = std::make_unique<MessageWriter>(ends_[1], "a-node");
  close(std::exchange(ends_[1], -1));
  for (int i = 0; i < 4000; ++i) log_->Write(std::string(1000, 'x'));
  log_.reset();
  std::array<char, 1 << 16> some;
  size_t all = 0;
  for (ssize_t bytes = 0;
       (bytes = read(ends_[0], some.data(), some.size())) > 0;) {
    all += static_cast<size_t>(bytes);
  }
  EXPECT_GT(all, MessageWriter::kQueueBytesMax / 2);
}

TEST_F(MessageWriterTest, LastWordsAreWritten) {
  log_ = std::make_unique<MessageWriter>(ends_[1], "a-node");
  log_->Write("the last one");
  log_.reset();
  pollfd there{ends_[0], POLLIN, 0};
  EXPECT_EQ(poll(&there, 1, 0), 1);
}

}  // namespace
}  // namespace alpheus::daemon
