// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/deletion.h"

#include <gtest/gtest.h>

#include <vector>

#include "quorum/arithmetic/quorum.h"

namespace alpheus::recovery {
namespace {

Configuration ListOf(uint64_t id, uint32_t replica_count,
                     uint32_t write_quorum) {
  Configuration list;
  list.id = id;
  list.replica_count = replica_count;
  list.write_quorum = write_quorum;
  for (uint64_t node = 1; node <= replica_count; ++node) {
    list.members.push_back({NodeId(node), 100 + node});
  }
  return list;
}

std::vector<DeletionWitness> Marked(const Configuration& list, uint32_t count) {
  std::vector<DeletionWitness> witnesses;
  for (uint32_t i = 0; i < count; ++i) {
    witnesses.push_back({list.members[i], {Deletion::kMarked, list}});
  }
  return witnesses;
}

// P-D3, for all sizes: decided exactly if the members that are not marked are
// no opening quorum together with any one that is.
TEST(DeletionTest, IsDecidedByAnOpeningQuorum) {
  for (uint32_t n = 1; n <= kMembersMax; ++n) {
    for (uint32_t w = 1; w <= n; ++w) {
      const Configuration list = ListOf(1, n, w);
      const uint32_t needed =
          quorum::OpeningQuorumSize(*quorum::MakeQuorumSizes(n, w));
      EXPECT_EQ(OpeningQuorumOf(list), needed);
      for (uint32_t marked = 0; marked <= n; ++marked) {
        EXPECT_EQ(IsDecided(Marked(list, marked)), marked >= needed)
            << n << " " << w << " " << marked;
        if (marked < needed) continue;
        EXPECT_LT(n - marked, needed);
      }
    }
  }
}

// DLT1.
TEST(DeletionTest, OtherListsOtherIncarnationsAndUnmarkedOnesDoNotCount) {
  const Configuration list = ListOf(1, 3, 2);
  std::vector<DeletionWitness> witnesses = Marked(list, 2);
  ASSERT_TRUE(IsDecided(witnesses));
  witnesses[1].state.deletion = Deletion::kNone;
  EXPECT_FALSE(IsDecided(witnesses));
  EXPECT_EQ(ListOfQuorum(witnesses), list);
  witnesses = Marked(list, 2);
  witnesses[1].state.configuration.id = 2;
  EXPECT_FALSE(IsDecided(witnesses));
  EXPECT_EQ(ListOfQuorum(witnesses), std::nullopt);
  witnesses = Marked(list, 2);
  witnesses[1].replica.incarnation = 7;
  EXPECT_FALSE(IsDecided(witnesses));
  // Not by the word of one that says that it is decided, either.
  witnesses = Marked(list, 1);
  witnesses[0].state.deletion = Deletion::kDecided;
  EXPECT_FALSE(IsDecided(witnesses));
}

TEST(DeletionTest, NewestListIsTaken) {
  std::vector<DeletionWitness> witnesses = Marked(ListOf(4, 3, 2), 2);
  for (const DeletionWitness& other : Marked(ListOf(3, 3, 2), 3)) {
    witnesses.push_back(other);
  }
  EXPECT_EQ(ListOfQuorum(witnesses)->id, 4u);
}

TEST(DeletionTest, ErrorsSayWhatToDo) {
  EXPECT_TRUE(absl::IsNotFound(DeletedError("a", Deletion::kMarked)));
  for (const Deletion deletion : {Deletion::kMarked, Deletion::kDecided}) {
    EXPECT_EQ(DeletionBy(DeletedError("a", deletion)), deletion);
  }
  EXPECT_EQ(DeletionBy(absl::NotFoundError("no file")), Deletion::kNone);
  EXPECT_NE(DeletedError("a", Deletion::kMarked).message().find("delete-log"),
            absl::string_view::npos);
  EXPECT_NE(
      DeletedError("a", Deletion::kDecided).message().find("another name"),
      absl::string_view::npos);
}

}  // namespace
}  // namespace alpheus::recovery
