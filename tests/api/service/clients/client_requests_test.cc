// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "log/base/random.h"

namespace alpheus::service {
namespace {

constexpr ClientId kClient = {{Epoch(1), Lsn(2)}};

Place At(uint64_t lsn) { return {Epoch(3), Lsn(lsn)}; }

class ClientRequestsTest : public ::testing::Test {
 protected:
  Admission Asked(uint64_t sequence, uint64_t unanswered) {
    return client_.Judge({sequence, unanswered}).admission;
  }
  void Append(uint64_t sequence, uint64_t lsn) {
    client_.Note(sequence, At(lsn));
  }

  ClientRequests client_{At(10)};
};

TEST_F(ClientRequestsTest, RequestsAreAdmittedInTheirOrder) {
  EXPECT_EQ(Asked(2, 1), Admission::kOutOfOrder);
  EXPECT_EQ(client_.Judge({5, 1}).expected, 1U);
  EXPECT_EQ(Asked(1, 1), Admission::kAdmitted);
  Append(1, 11);
  EXPECT_EQ(Asked(2, 1), Admission::kAdmitted);
  EXPECT_EQ(Asked(3, 1), Admission::kOutOfOrder);
  EXPECT_EQ(client_.Judge({3, 1}).expected, 2U);
}

// CLR2, P-E30: request 2 was refused, and the client knows.
TEST_F(ClientRequestsTest, RefusedRequestStopsNobody) {
  Append(1, 11);
  EXPECT_EQ(Asked(3, 2), Admission::kOutOfOrder);
  EXPECT_EQ(Asked(3, 3), Admission::kAdmitted);
  Append(3, 12);
  EXPECT_EQ(Asked(4, 3), Admission::kAdmitted);
}

// CLR3.
TEST_F(ClientRequestsTest, RepeatGetsThePlaceOfItsOwnRecord) {
  Append(1, 11);
  Append(2, 15);
  const Judgement one = client_.Judge({1, 1});
  EXPECT_EQ(one.admission, Admission::kRepeated);
  EXPECT_EQ(one.place, At(11));
  EXPECT_EQ(one.durable_with, At(11));
  const Judgement two = client_.Judge({2, 2});
  EXPECT_EQ(two.place, At(15));
  // It has the answer, and asks all the same: nothing is made up.
  const Judgement again = client_.Judge({1, 1});
  EXPECT_EQ(again.admission, Admission::kRepeated);
  EXPECT_FALSE(again.place.has_value());
  EXPECT_EQ(again.durable_with, At(15));
}

// CLR4: what was sent before may still arrive.
TEST_F(ClientRequestsTest, RequestsFromBeforeAResumptionAreRefused) {
  Append(1, 11);
  const uint64_t resumption = client_.Resume(1);
  EXPECT_EQ(client_.last(), 1U);
  EXPECT_EQ(client_.Judge({2, 1}).admission, Admission::kSuperseded);
  EXPECT_EQ(client_.Judge({1, 1}).admission, Admission::kSuperseded);
  EXPECT_EQ(client_.Judge({1, 1, resumption}).admission, Admission::kRepeated);
  EXPECT_EQ(client_.Judge({2, 1, resumption}).admission, Admission::kAdmitted);
  EXPECT_EQ(client_.Judge({2, 1, resumption + 1}).admission,
            Admission::kImpossible);
  EXPECT_GT(client_.Resume(1), resumption);
}

// A request that was superseded says nothing of what has an answer.
TEST_F(ClientRequestsTest, SupersededRequestForgetsNoPlace) {
  Append(1, 11);
  Append(2, 12);
  const uint64_t resumption = client_.Resume(1);
  client_.Judge({3, 3});
  EXPECT_EQ(client_.Judge({1, 1, resumption}).place, At(11));
}

TEST_F(ClientRequestsTest, ResumptionForgetsPlacesThatAreNotAskedFor) {
  Append(1, 11);
  Append(2, 12);
  client_.Resume(2);
  ASSERT_EQ(client_.places().size(), 1U);
  EXPECT_EQ(client_.places().front(), (Placed{2, At(12)}));
}

TEST_F(ClientRequestsTest, NothingIsAdmittedBehindTheEnd) {
  Append(1, 11);
  client_.NoteEnd(1, At(12));
  EXPECT_TRUE(client_.is_closed());
  EXPECT_EQ(Asked(2, 2), Admission::kClosed);
  EXPECT_EQ(client_.Judge({2, 2}).durable_with, At(12));
  // Requests from before the end still get their answer.
  EXPECT_EQ(Asked(1, 1), Admission::kRepeated);
  ClientRequests saved(client_.ToEntry(kClient));
  EXPECT_EQ(saved.Judge({2, 2}).admission, Admission::kClosed);
}

TEST_F(ClientRequestsTest, NoMoreAreUnansweredThanPlacesAreKept) {
  for (uint64_t i = 1; i <= kPlacesMax; ++i) {
    ASSERT_EQ(Asked(i, 1), Admission::kAdmitted);
    Append(i, 10 + i);
  }
  EXPECT_EQ(Asked(kPlacesMax + 1, 1), Admission::kTooMany);
  for (uint64_t i = 1; i <= kPlacesMax; ++i) {
    EXPECT_EQ(client_.Judge({i, 1}).place, At(10 + i));
  }
  EXPECT_EQ(Asked(kPlacesMax + 1, 2), Admission::kAdmitted);
}

TEST_F(ClientRequestsTest, ImpossibleNumbersAreRefused) {
  EXPECT_EQ(Asked(0, 0), Admission::kImpossible);
  EXPECT_EQ(Asked(1, 0), Admission::kImpossible);
  EXPECT_EQ(Asked(1, 2), Admission::kImpossible);
}

// CLR5, P-E29: a table that was made before record 2 was appended, and lies
// behind it.
TEST_F(ClientRequestsTest, OlderTableChangesNothing) {
  Append(1, 11);
  const TableEntry old = client_.ToEntry(kClient);
  Append(2, 12);
  client_.Join(old);
  EXPECT_EQ(client_.last(), 2U);
  EXPECT_EQ(client_.last_place(), At(12));
  ClientRequests other(old);
  other.Join(client_.ToEntry(kClient));
  EXPECT_EQ(other.last(), 2U);
  EXPECT_EQ(other.Judge({1, 1}).place, At(11));
  EXPECT_EQ(other.Judge({2, 1}).place, At(12));
}

// Another implementation, which keeps all: a client sends and repeats requests,
// some are refused, the primary changes and reads the log again, and each
// request is in the log once at most, in order.
TEST_F(ClientRequestsTest, EachRequestIsAppendedOnceWhateverIsRepeated) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::vector<uint64_t> log;  // sequences; LSN is 11 + index
    std::set<uint64_t> answered;
    uint64_t next = 1;
    ClientRequests client(At(10));
    const auto lowest = [&] {
      uint64_t one = 1;
      while (answered.contains(one)) ++one;
      return one;
    };
    for (int step = 0; step < 400; ++step) {
      const uint64_t unanswered = lowest();
      const bool is_new = random.Below(2) == 0 && next - unanswered < 20;
      const uint64_t sequence =
          is_new ? next++
                 : unanswered +
                       random.Below(std::max<uint64_t>(1, next - unanswered));
      if (sequence >= next) continue;
      const Judgement judged =
          client.Judge({sequence, std::min(unanswered, sequence)});
      const auto found = std::ranges::find(log, sequence);
      switch (judged.admission) {
        case Admission::kAdmitted:
          ASSERT_EQ(found, log.end()) << seed;
          // A condition does not hold now and then.
          if (random.Below(8) == 0) {
            answered.insert(sequence);
            break;
          }
          log.push_back(sequence);
          client.Note(sequence, At(10 + log.size()));
          if (random.Below(2) == 0) answered.insert(sequence);
          break;
        case Admission::kRepeated:
          if (judged.place) {
            ASSERT_NE(found, log.end()) << seed;
            ASSERT_EQ(judged.place->lsn.value,
                      11 + static_cast<uint64_t>(found - log.begin()));
          } else {
            ASSERT_TRUE(answered.contains(sequence)) << seed;
          }
          answered.insert(sequence);
          break;
        case Admission::kOutOfOrder:
          ASSERT_EQ(found, log.end()) << seed;
          break;
        default:
          FAIL() << seed;
      }
      if (random.Below(50) != 0) continue;
      ClientRequests again(At(10));
      for (size_t i = 0; i < log.size(); ++i) {
        again.Note(log[i], At(11 + i));
      }
      client = again;
    }
    EXPECT_TRUE(std::ranges::is_sorted(log)) << seed;
    EXPECT_FALSE(log.empty()) << seed;
  }
}

}  // namespace
}  // namespace alpheus::service
