// SPDX-License-Identifier: Apache-2.0
// Does the checker of the service see each way in which a request is in the log
// twice, or a client is told what is not so? Records are written by hand.
#include "tools/sim/checkers/service_checker.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "api/service/record/service_record.h"
#include "log/base/ids.h"
#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

using service::ClientId;
using service::Envelope;
using service::kEnvelopeBytes;
using service::Place;
using service::ServiceRecordKind;
using Request = ServiceChecker::Request;

constexpr PrimaryNumber kPrimary = 1;
constexpr Epoch kEpoch(5);

class ServiceCheckerTest : public CheckerTest {
 protected:
  // The client whose beginning is at LSN 1.
  ServiceCheckerTest() {
    Write(Lsn(1), {.kind = ServiceRecordKind::kOpen}, 0, 0);
  }

  Request Ask(uint64_t sequence, uint64_t token,
              std::optional<Lsn> expected_lsn = std::nullopt,
              bool only_if_last = false) const {
    return {client_, sequence, token, expected_lsn, only_if_last};
  }
  // The record of a request, as copy `copy`, becomes durable.
  void Append(Lsn lsn, const Request& request, CopyNumber copy) {
    Write(lsn,
          {ServiceRecordKind::kAppend, 0, request.client, request.sequence},
          request.token, copy);
  }
  // The same of one that is sent at once.
  CopyNumber SendAndAppend(Lsn lsn, const Request& request) {
    const CopyNumber copy = checker_.Sends(request);
    Append(lsn, request, copy);
    return copy;
  }
  void BeginByKey(Lsn lsn, uint64_t key) {
    Write(lsn, {.kind = ServiceRecordKind::kOpenByKey}, key, 0);
  }
  void Write(Lsn lsn, const Envelope& envelope, uint64_t token,
             CopyNumber copy) {
    std::vector<std::byte> payload(kEnvelopeBytes + sizeof(token));
    EncodeEnvelope(envelope, std::span(payload).first<kEnvelopeBytes>());
    std::memcpy(payload.data() + kEnvelopeBytes, &token, sizeof(token));
    checker_.Writes(kPrimary, kEpoch, ++operations_, lsn, payload,
                    {{envelope.sequence, copy}});
    checker_.Durable(kPrimary, lsn);
  }
  // A later primary opens the log, and shows this operation at this LSN.
  void Show(Lsn lsn, OperationId operation, Lsn end) {
    std::array<std::byte, sizeof(operation)> payload;
    std::memcpy(payload.data(), &operation, sizeof(operation));
    checker_.Opens(kPrimary + 1);
    const History::Shown shown = {
        .lsn = lsn, .epoch = kEpoch, .payload = payload};
    checker_.Opened(kPrimary + 1, kEpoch + 1, end, {&shown, 1});
  }

  ServiceChecker checker_{oracle_};
  const ClientId client_ = {{kEpoch, Lsn(1)}};
  OperationId operations_ = 0;
};

TEST_F(ServiceCheckerTest, RequestThatIsThereOnceIsInOrder) {
  const Request first = Ask(1, 11);
  SendAndAppend(Lsn(2), first);
  checker_.HasAppended(first, Place{kEpoch, Lsn(2)});
  checker_.HasAppended(first, std::nullopt);
  EXPECT_EQ(checker_.told(), Lsn(2));
  Show(Lsn(2), 2, Lsn(3));
  EXPECT_EQ(violated(), "");
}

TEST_F(ServiceCheckerTest, ClientThatBeginsTwiceByOneKeyIsSeen) {
  BeginByKey(Lsn(2), 7);
  BeginByKey(Lsn(3), 8);
  EXPECT_EQ(violated(), "");
  BeginByKey(Lsn(4), 7);
  EXPECT_EQ(violated(), "SVC9");
}

TEST_F(ServiceCheckerTest, ClientMayBeginAgainBehindItsRequestOrItsEnd) {
  BeginByKey(Lsn(2), 7);
  Request request = Ask(1, 11);
  request.client = {{kEpoch, Lsn(2)}};
  SendAndAppend(Lsn(3), request);
  BeginByKey(Lsn(4), 7);
  Write(Lsn(5), {ServiceRecordKind::kClose, 0, {{kEpoch, Lsn(4)}}, 0}, 0, 0);
  BeginByKey(Lsn(6), 7);
  EXPECT_EQ(violated(), "");
}

TEST_F(ServiceCheckerTest, NumberThatIsThereTwiceIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11));
  SendAndAppend(Lsn(3), Ask(1, 12));
  EXPECT_EQ(violated(), "SVC1");
}

TEST_F(ServiceCheckerTest, PayloadThatIsThereByTwoNumbersIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11));
  SendAndAppend(Lsn(3), Ask(2, 11));
  EXPECT_EQ(violated(), "SVC1");
}

TEST_F(ServiceCheckerTest, CopyThatNobodySentIsSeen) {
  checker_.Sends(Ask(1, 11));
  Append(Lsn(2), Ask(1, 11), 0);
  EXPECT_EQ(violated(), "SVC1");
}

TEST_F(ServiceCheckerTest, RequestsInAnotherOrderAreSeen) {
  SendAndAppend(Lsn(2), Ask(2, 12));
  SendAndAppend(Lsn(3), Ask(1, 11));
  EXPECT_EQ(violated(), "SVC2");
}

TEST_F(ServiceCheckerTest, PlaceOfAnotherRequestIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11));
  SendAndAppend(Lsn(3), Ask(2, 12));
  checker_.HasAppended(Ask(1, 11), Place{kEpoch, Lsn(3)});
  EXPECT_EQ(violated(), "SVC3");
}

TEST_F(ServiceCheckerTest, PlaceInAnotherEpochIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11));
  checker_.HasAppended(Ask(1, 11), Place{kEpoch + 1, Lsn(2)});
  EXPECT_EQ(violated(), "SVC3");
}

TEST_F(ServiceCheckerTest, RequestThatIsNotThereIsSeen) {
  checker_.Sends(Ask(1, 11));
  checker_.HasAppended(Ask(1, 11), std::nullopt);
  EXPECT_EQ(violated(), "SVC3");
}

TEST_F(ServiceCheckerTest, PayloadOfAnotherRequestIsSeen) {
  const CopyNumber copy = checker_.Sends(Ask(1, 11));
  Append(Lsn(2), Ask(1, 12), copy);
  EXPECT_EQ(violated(), "SVC3");
}

TEST_F(ServiceCheckerTest, OpeningThatLosesWhatClientsKnowIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11));
  checker_.HasAppended(Ask(1, 11), std::nullopt);
  Show(Lsn(1), 1, Lsn(2));
  EXPECT_EQ(violated(), "SVC3");
}

TEST_F(ServiceCheckerTest, OpeningThatShowsAnotherRecordIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11));
  Show(Lsn(2), 1, Lsn(3));
  EXPECT_EQ(violated(), "SVC3");
}

TEST_F(ServiceCheckerTest, RefusedCopyThatIsThereIsSeen) {
  const CopyNumber copy = SendAndAppend(Lsn(2), Ask(1, 11));
  checker_.HasRefused(copy);
  EXPECT_EQ(violated(), "SVC4");
}

TEST_F(ServiceCheckerTest, RefusedCopyThatComesLaterIsSeen) {
  const CopyNumber copy = checker_.Sends(Ask(1, 11));
  checker_.HasRefused(copy);
  EXPECT_EQ(violated(), "");
  Append(Lsn(2), Ask(1, 11), copy);
  EXPECT_EQ(violated(), "SVC4");
}

TEST_F(ServiceCheckerTest, CopyThatComesAfterAResumptionIsSeen) {
  const CopyNumber first = checker_.Sends(Ask(1, 11));
  const CopyNumber second = checker_.Sends(Ask(2, 12));
  EXPECT_EQ(checker_.HasResumed(client_, 1), 1u);
  Append(Lsn(2), Ask(1, 11), first);
  EXPECT_EQ(violated(), "");
  Append(Lsn(3), Ask(2, 12), second);
  EXPECT_EQ(violated(), "SVC4");
}

TEST_F(ServiceCheckerTest, LsnThatWasNotExpectedIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11, Lsn(2)));
  EXPECT_EQ(violated(), "");
  SendAndAppend(Lsn(3), Ask(2, 12, Lsn(4)));
  EXPECT_EQ(violated(), "SVC5");
}

TEST_F(ServiceCheckerTest, RequestBehindAnotherClientIsSeen) {
  SendAndAppend(Lsn(2), Ask(1, 11, std::nullopt, /*only_if_last=*/true));
  EXPECT_EQ(violated(), "");
  Write(Lsn(3), {.kind = ServiceRecordKind::kOpen}, 0, 0);
  SendAndAppend(Lsn(4), Ask(2, 12, std::nullopt, /*only_if_last=*/true));
  EXPECT_EQ(violated(), "SVC5");
}

TEST_F(ServiceCheckerTest, RefusalForAConditionThatHoldsIsSeen) {
  EXPECT_FALSE(checker_.HasMismatch(Ask(1, 11, Lsn(9)), Lsn(2), Lsn(1)));
  EXPECT_EQ(violated(), "");
  // An answer that is older than what its client knew is counted.
  EXPECT_TRUE(checker_.HasMismatch(Ask(1, 11, Lsn(9)), Lsn(2), Lsn(2)));
  EXPECT_EQ(violated(), "");
  checker_.HasMismatch(Ask(1, 11, Lsn(2)), Lsn(2), Lsn(1));
  EXPECT_EQ(violated(), "SVC5");
}

TEST_F(ServiceCheckerTest, ReadThatLacksWhatWasKnownIsSeen) {
  checker_.HasRead(kEpoch, /*known=*/Lsn(7), /*through=*/Lsn(7));
  checker_.HasRead(kEpoch, Lsn(7), Lsn(8));
  EXPECT_EQ(violated(), "");
  checker_.HasRead(kEpoch, Lsn(8), Lsn(7));
  EXPECT_EQ(violated(), "SVC8");
}

TEST_F(ServiceCheckerTest, ClientThatIsForgottenIsSeen) {
  const ClientId ending = {{kEpoch, Lsn(7)}};
  checker_.Closes(ending);
  checker_.HasNoClient(ending);
  EXPECT_EQ(violated(), "");
  checker_.HasNoClient(client_);
  EXPECT_EQ(violated(), "SVC6");
}

}  // namespace
}  // namespace alpheus::sim
