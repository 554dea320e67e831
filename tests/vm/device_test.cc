// SPDX-License-Identifier: Apache-2.0
// Adapters that fail, as they say of themselves: FB9. Nothing that is done to
// them here is undone: this suite is a guest's last.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <ios>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/vm/verbs_guest_test.h"

namespace alpheus::testing {

using fabric::WorkId;

namespace {

using enum fabric::RemoteAccess;
using Kind = fabric::ConnectionEvent::Kind;

class DeviceTest : public VerbsGuestTest {
 protected:
  // The adapter's network interface (tests/vm/network.sh).
  static void TakePortDown(int host) {
    const std::string path = absl::StrCat("/sys/class/net/v", host, "/flags");
    constexpr unsigned kUp = 1;
    unsigned flags = 0;
    ASSERT_TRUE(std::ifstream(path) >> std::hex >> flags) << path;
    std::ofstream file(path);
    file << "0x" << std::hex << (flags & ~kUp) << std::flush;
    ASSERT_TRUE(file.good()) << path;
  }
  // Expects that every call that posts fails with this reason.
  void ExpectBroken(int host, fabric::ConnectionId connection,
                    const char* why) {
    for (const absl::Status& posted :
         {fabric(host).PostSend(connection, WorkId(20), {}),
          fabric(host).PostReceive(connection, WorkId(21), {})}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(posted));
      EXPECT_THAT(std::string(posted.message()), ::testing::HasSubstr(why));
    }
  }
  // Connections to host 2 go on.
  void ExpectOtherStands(const TestLink& other) {
    ASSERT_TRUE(fabric(0).PostWrite(other.at_host, WorkId(7), {}, {}).ok());
    EXPECT_EQ(Next(0, other.at_host).status, fabric::CompletionStatus::kOk);
  }
};

// First: what the others do to the adapters stays.
TEST_P(DeviceTest, EndOfTheOtherSideIsNamed) {
  const TestLink link = Link(0, 1);
  ASSERT_TRUE(fabric(1).Close(link.at_peer).ok());
  EXPECT_EQ(Await(0, Kind::kDisconnected).connection, link.at_host);
  ExpectBroken(0, link.at_host, "the peer ended it (rxe0)");
}

// Nobody posts anything: only the adapter can tell.
TEST_P(DeviceTest, PortThatGoesDownBreaksItsConnectionsAtOnce) {
  const TestLink link = Link(0, 1);
  const TestLink other = Link(0, 2);
  ASSERT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(1), {}).ok());
  TakePortDown(1);
  EXPECT_EQ(Await(1, Kind::kDisconnected).connection, link.at_peer);
  EXPECT_EQ(NextReceive(1, link.at_peer).status,
            fabric::CompletionStatus::kFlushed);
  EXPECT_EQ(verbs(1).counters().device_failures, 1u);
  ExpectBroken(1, link.at_peer, "the adapter's port went down (rxe1)");
  ExpectOtherStands(other);
  // The peer finds out by what it posts.
  ASSERT_TRUE(fabric(0).PostWrite(link.at_host, WorkId(3), {}, {}).ok());
  EXPECT_EQ(Next(0, link.at_host).status, fabric::CompletionStatus::kPeerGone);
}

// As `rdma link delete` does: the command ends when nobody holds it any more.
TEST_P(DeviceTest, AdapterThatIsTakenAwayBreaksItsConnections) {
  const TestLink link = Link(0, 2);
  const TestRegion region = MakeRegion(2, 64, kReadWrite);
  ASSERT_TRUE(fabric(2).PostReceive(link.at_peer, WorkId(1), {}).ok());
  // NOLINTNEXTLINE(cert-env33-c): the guest's own command.
  ASSERT_EQ(std::system("rdma link delete rxe2 &"), 0);
  EXPECT_EQ(Await(2, Kind::kDisconnected).connection, link.at_peer);
  EXPECT_EQ(NextReceive(2, link.at_peer).status,
            fabric::CompletionStatus::kFlushed);
  EXPECT_TRUE(fabric(2).Deregister(region.key).ok());
  EXPECT_TRUE(fabric(2).Close(link.at_peer).ok());
}

INSTANTIATE_TEST_SUITE_P(Verbs, DeviceTest, ::testing::Values(GuestParam()),
                         ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
