// SPDX-License-Identifier: Apache-2.0
// Does the cable carry, and is it cut? Two sockets of this test's own at its
// ends.
#include "tools/nemesis/links/cutting_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fixtures/patience.h"

namespace alpheus::demo {

using fabric::tcp::Descriptor;

namespace {

using ::alpheus::testing::kPatienceMs;

// Nothing is to come, and this would have been enough for it.
constexpr int kSilenceMs = 100;

bool IsReadable(const Descriptor& socket, int timeout_ms) {
  pollfd fd = {socket.get(), POLLIN, 0};
  return poll(&fd, 1, timeout_ms) == 1;
}

void Send(const Descriptor& socket, std::string text) {
  iovec bytes = {text.data(), text.size()};
  ASSERT_EQ(fabric::tcp::SendSome(socket, {&bytes, 1}).bytes, text.size());
}

std::string Receive(const Descriptor& socket, size_t bytes) {
  std::string text;
  while (text.size() < bytes && IsReadable(socket, kPatienceMs)) {
    std::vector<std::byte> buffer(bytes - text.size());
    const fabric::tcp::IoResult got = fabric::tcp::ReceiveSome(socket, buffer);
    if (got.outcome == fabric::tcp::IoOutcome::kClosed) break;
    text.append(reinterpret_cast<const char*>(buffer.data()), got.bytes);
  }
  return text;
}

class CuttingProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listener = fabric::tcp::ListenOn("127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    auto proxy = CuttingProxy::Start(listener_.address);
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxy_ = *std::move(proxy);
    auto client = fabric::tcp::StartConnect(proxy_->address(), "");
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    ASSERT_TRUE(IsReadable(listener_.socket, kPatienceMs));
    server_ = fabric::tcp::AcceptOne(listener_.socket).socket;
    ASSERT_TRUE(server_.is_open());
  }

  fabric::tcp::Listener listener_;
  std::unique_ptr<CuttingProxy> proxy_;
  Descriptor client_;
  Descriptor server_;
};

TEST_F(CuttingProxyTest, BytesPassBothWays) {
  Send(client_, "question");
  EXPECT_EQ(Receive(server_, 8), "question");
  Send(server_, "answer");
  EXPECT_EQ(Receive(client_, 6), "answer");
  proxy_->Cut();  // its turn is over then, and counted
  EXPECT_EQ(proxy_->passed_bytes(), 14u);
}

TEST_F(CuttingProxyTest, NothingPassesWhileItIsCutAndAllArrivesWhenItIsHealed) {
  proxy_->Cut();
  Send(client_, "question");
  Send(server_, "other way");
  EXPECT_FALSE(IsReadable(server_, kSilenceMs));
  EXPECT_FALSE(IsReadable(client_, kSilenceMs));
  EXPECT_EQ(proxy_->passed_bytes(), 0u);
  proxy_->Heal();
  EXPECT_EQ(Receive(server_, 8), "question");
  EXPECT_EQ(Receive(client_, 9), "other way");
}

TEST_F(CuttingProxyTest, OneDirectionMayBeCutAlone) {
  proxy_->Cut(CutDirection::kToServer);
  Send(client_, "question");
  Send(server_, "other way");
  EXPECT_EQ(Receive(client_, 9), "other way");
  EXPECT_FALSE(IsReadable(server_, kSilenceMs));
  // The last cut is the one that is.
  proxy_->Cut(CutDirection::kToClient);
  EXPECT_EQ(Receive(server_, 8), "question");
  Send(server_, "answer");
  EXPECT_FALSE(IsReadable(client_, kSilenceMs));
  proxy_->Heal();
  EXPECT_EQ(Receive(client_, 6), "answer");
}

TEST_F(CuttingProxyTest, EndOfTheStreamIsPassedOn) {
  Send(client_, "last");
  client_ = Descriptor();
  EXPECT_EQ(Receive(server_, 5), "last");
  std::vector<std::byte> more(1);
  ASSERT_TRUE(IsReadable(server_, kPatienceMs));
  EXPECT_EQ(fabric::tcp::ReceiveSome(server_, more).outcome,
            fabric::tcp::IoOutcome::kClosed);
}

}  // namespace
}  // namespace alpheus::demo
