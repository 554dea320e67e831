// SPDX-License-Identifier: Apache-2.0
// How connections begin and end.
#include "tests/replication/fabric/conformance.h"

namespace alpheus::testing {

using fabric::CompletionStatus;
using fabric::ConnectionEvent;
using fabric::ConnectionId;
using fabric::WorkId;

namespace {

using Kind = ConnectionEvent::Kind;

TEST_P(FabricConformanceTest, ConnectAndAcceptCarryPrivateData) {
  const std::string most(fabric(0).limits().private_bytes_max, '\0');
  for (const std::string& data : {std::string("hello"), std::string(), most}) {
    const auto connection = fabric(0).Connect(Listening(1), data, Deadline());
    ASSERT_TRUE(connection.ok()) << connection.status();
    const ConnectionEvent request = Await(1, Kind::kRequested);
    EXPECT_EQ(request.private_data, data);
    EXPECT_NE(request.peer, "");
    ASSERT_TRUE(fabric(1).Accept(request.connection, data + "").ok());
    const ConnectionEvent established = Await(0, Kind::kEstablished);
    EXPECT_EQ(established.connection, *connection);
    EXPECT_EQ(established.private_data, data);
    EXPECT_EQ(Await(1, Kind::kEstablished).connection, request.connection);
  }
}

TEST_P(FabricConformanceTest, RejectSaysWhyAndEndsTheRequest) {
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  ASSERT_TRUE(fabric(1).Reject(request, "epoch 7").ok());
  const ConnectionEvent rejected = Await(0, Kind::kRejected);
  EXPECT_EQ(rejected.connection, connection);
  EXPECT_EQ(rejected.private_data, "epoch 7");
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Accept(request, "")));
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Close(request)));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      fabric(0).PostSend(connection, WorkId(1), {})));
  EXPECT_TRUE(fabric(0).Close(connection).ok());
}

TEST_P(FabricConformanceTest, CloseOfARequestRejectsIt) {
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  ASSERT_TRUE(fabric(1).Close(request).ok());
  const ConnectionEvent rejected = Await(0, Kind::kRejected);
  EXPECT_EQ(rejected.connection, connection);
  EXPECT_EQ(rejected.private_data, "");
}

TEST_P(FabricConformanceTest, AddressWithoutListenerIsUnreachable) {
  const auto connection =
      fabric(0).Connect(world_->UnusedAddress(1), "", Deadline());
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(Await(0, Kind::kUnreachable).connection, *connection);
  EXPECT_TRUE(fabric(0).Close(*connection).ok());
}

TEST_P(FabricConformanceTest, DeadlineEndsConnectingOverACutLink) {
  const std::string address = Listening(1);
  world_->Cut(0, 1);
  const int64_t deadline = world_->NowNanos() + 2'000'000;
  const auto connection =
      fabric(0).Connect(address, "", Deadline::AtNanos(deadline));
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(Await(0, Kind::kUnreachable).connection, *connection);
  EXPECT_GE(world_->NowNanos(), deadline);
}

TEST_P(FabricConformanceTest, DeadlineEndsConnectingToASilentProgram) {
  const int64_t deadline = world_->NowNanos() + 2'000'000;
  const auto connection =
      fabric(0).Connect(Listening(1), "", Deadline::AtNanos(deadline));
  ASSERT_TRUE(connection.ok()) << connection.status();
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  EXPECT_EQ(Await(0, Kind::kUnreachable).connection, *connection);
  EXPECT_GE(world_->NowNanos(), deadline);
  Settle();
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Accept(request, "")));
}

TEST_P(FabricConformanceTest, PrivateDataBeyondTheLimitIsRefused) {
  const std::string data(fabric(0).limits().private_bytes_max + 1, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(
      fabric(0).Connect(Listening(1), data, Deadline()).status()));
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  EXPECT_TRUE(absl::IsInvalidArgument(fabric(1).Accept(request, data)));
  EXPECT_TRUE(fabric(1).Accept(request, "").ok()) << "the request stays";
  EXPECT_EQ(Await(0, Kind::kEstablished).connection, connection);
}

TEST_P(FabricConformanceTest, AddressesAreChecked) {
  EXPECT_TRUE(absl::IsAlreadyExists(fabric(1).Listen(Listening(1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(fabric(1).Listen("no address").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      fabric(0).Connect("no address", "", Deadline()).status()));
}

TEST_P(FabricConformanceTest, RequestWhoseRequesterClosedIsNotAccepted) {
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  ASSERT_TRUE(fabric(0).Close(connection).ok());
  Settle();
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Accept(request, "")));
  EXPECT_TRUE(events_[0].empty()) << "no event comes after Close";
}

TEST_P(FabricConformanceTest, UnknownConnectionsAreNotFound) {
  fabric::Fabric& own = fabric(0);
  const TestRegion region = MakeRegion(0, 8, fabric::RemoteAccess::kNone);
  const fabric::LocalBytes bytes = region.Local();
  const WorkId work(1);
  for (const ConnectionId id : {ConnectionId(), ConnectionId(1u << 30)}) {
    EXPECT_TRUE(absl::IsNotFound(own.Accept(id, "")));
    EXPECT_TRUE(absl::IsNotFound(own.Reject(id, "")));
    EXPECT_TRUE(absl::IsNotFound(own.Close(id)));
    EXPECT_TRUE(absl::IsNotFound(own.PostWrite(id, work, bytes, {})));
    EXPECT_TRUE(
        absl::IsNotFound(own.PostWriteImmediate(id, work, bytes, {}, 0)));
    EXPECT_TRUE(absl::IsNotFound(own.PostRead(id, work, bytes, {})));
    EXPECT_TRUE(
        absl::IsNotFound(own.PostCompareSwap(id, work, bytes, {}, 0, 0)));
    EXPECT_TRUE(absl::IsNotFound(own.PostFetchAdd(id, work, bytes, {}, 0)));
    EXPECT_TRUE(absl::IsNotFound(own.PostFlush(id, work, {}, 0)));
    EXPECT_TRUE(absl::IsNotFound(own.PostSend(id, work, bytes)));
    EXPECT_TRUE(absl::IsNotFound(own.PostReceive(id, work, bytes)));
  }
}

// Receives may be posted on both sides before the connection stands, other
// work may not.
TEST_P(FabricConformanceTest, OnlyReceivesArePostedBeforeEstablished) {
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  EXPECT_TRUE(fabric(0).PostReceive(connection, WorkId(1), {}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      fabric(0).PostSend(connection, WorkId(2), {})));
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  EXPECT_TRUE(fabric(1).PostReceive(request, WorkId(3), {}).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(fabric(1).PostSend(request, WorkId(4), {})));
  ASSERT_TRUE(fabric(1).Accept(request, "").ok());
  Await(0, Kind::kEstablished);
  ASSERT_TRUE(fabric(0).PostSend(connection, WorkId(5), {}).ok());
  EXPECT_EQ(NextReceive(1, request).work, WorkId(3));
  Await(1, Kind::kEstablished);
  ASSERT_TRUE(fabric(1).PostSend(request, WorkId(6), {}).ok());
  EXPECT_EQ(NextReceive(0, connection).work, WorkId(1));
}

TEST_P(FabricConformanceTest, ReceivesOfARejectedConnectionAreFlushed) {
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  ASSERT_TRUE(fabric(0).PostReceive(connection, WorkId(1), {}).ok());
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  ASSERT_TRUE(fabric(1).PostReceive(request, WorkId(2), {}).ok());
  ASSERT_TRUE(fabric(1).Reject(request, "").ok());
  EXPECT_EQ(NextReceive(1, request).status, CompletionStatus::kFlushed);
  Await(0, Kind::kRejected);
  ASSERT_TRUE(fabric(0).Close(connection).ok());
  EXPECT_EQ(NextReceive(0, connection).status, CompletionStatus::kFlushed);
}

TEST_P(FabricConformanceTest, CloseIsSeenByThePeerOnce) {
  const TestLink link = Link(0, 1);
  ASSERT_TRUE(fabric(0).Close(link.at_host).ok());
  EXPECT_TRUE(absl::IsNotFound(fabric(0).Close(link.at_host)));
  EXPECT_EQ(Await(1, Kind::kDisconnected).connection, link.at_peer);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      fabric(1).PostReceive(link.at_peer, WorkId(1), {})));
  Settle();
  EXPECT_TRUE(events_[1].empty());
  EXPECT_TRUE(fabric(1).Close(link.at_peer).ok());
  EXPECT_TRUE(events_[0].empty());
}

// FB3: each posted operation completes exactly once, in its order.
TEST_P(FabricConformanceTest, CloseFlushesWhatIsPosted) {
  const TestLink link = Link(0, 1);
  const TestRegion own = MakeRegion(0, 4096, fabric::RemoteAccess::kNone);
  const TestRegion remote = MakeRegion(1, 4096, fabric::RemoteAccess::kWrite);
  for (uint64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(
        fabric(0)
            .PostWrite(link.at_host, WorkId(i), own.Local(), remote.At(0))
            .ok());
    ASSERT_TRUE(fabric(0).PostReceive(link.at_host, WorkId(10 + i), {}).ok());
  }
  ASSERT_TRUE(fabric(0).Close(link.at_host).ok());
  Settle();
  ASSERT_EQ(CompletionsOf(0, link.at_host), 12u);
  for (uint64_t i = 0; i < 6; ++i) {
    const fabric::Completion receive = NextReceive(0, link.at_host);
    EXPECT_EQ(receive.work, WorkId(10 + i));
    EXPECT_EQ(receive.status, CompletionStatus::kFlushed);
  }
  for (uint64_t i = 0; i < 6; ++i) {
    const fabric::Completion send = Next(0, link.at_host);
    EXPECT_EQ(send.work, WorkId(i));
    EXPECT_EQ(send.operation, fabric::Operation::kWrite);
  }
}

// Nothing is left of a request that was rejected, however that went: nobody
// would close it.
TEST_P(FabricConformanceTest, RejectEndsARequestWhosePeerHasGone) {
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  ASSERT_TRUE(fabric(1).PostReceive(request, WorkId(1), {}).ok());
  ASSERT_TRUE(fabric(0).Close(connection).ok());
  EXPECT_EQ(NextReceive(1, request).status, CompletionStatus::kFlushed);
  EXPECT_TRUE(fabric(1).Reject(request, "epoch 7").ok());
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Close(request)));
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Reject(request, "")));
}

TEST_P(FabricConformanceTest, RejectThatHasTooMuchToSayRejectsAllTheSame) {
  const std::string data(fabric(0).limits().private_bytes_max + 1, 'x');
  const ConnectionId connection =
      *fabric(0).Connect(Listening(1), "", Deadline());
  const ConnectionId request = Await(1, Kind::kRequested).connection;
  EXPECT_TRUE(absl::IsInvalidArgument(fabric(1).Reject(request, data)));
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Close(request)));
  const ConnectionEvent rejected = Await(0, Kind::kRejected);
  EXPECT_EQ(rejected.connection, connection);
  EXPECT_EQ(rejected.private_data, "");
}

// A connection that has been accepted is no request any more.
TEST_P(FabricConformanceTest, RejectLeavesAConnectionThatStands) {
  const TestLink link = Link(0, 1);
  EXPECT_TRUE(absl::IsNotFound(fabric(1).Reject(link.at_peer, "")));
  EXPECT_TRUE(absl::IsNotFound(fabric(0).Reject(link.at_host, "")));
  ASSERT_TRUE(fabric(0).PostWrite(link.at_host, WorkId(1), {}, {}).ok());
  EXPECT_EQ(Next(0, link.at_host).status, CompletionStatus::kOk);
}

}  // namespace
}  // namespace alpheus::testing
