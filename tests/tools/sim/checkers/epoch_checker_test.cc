// SPDX-License-Identifier: Apache-2.0
// Does the checker of superlines and tables see each thing that no medium may
// say? Every test but the first lets a medium say one of them.
#include "tools/sim/checkers/epoch_checker.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/tools/sim/world/checked_world.h"
#include "tests/tools/sim/world/medium.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

constexpr quorum::PrimaryId kOne{NodeId(1), 11};
constexpr quorum::PrimaryId kTwo{NodeId(2), 22};
constexpr quorum::Promise kFive{Epoch(5), kOne};
constexpr quorum::Promise kSix{Epoch(6), kTwo};
constexpr uint64_t kRingLine = kLineBytes;

class EpochCheckerTest : public CheckedWorldTest {
 protected:
  using CheckedWorldTest::CheckedWorldTest;

  Medium MediumOf(int machine) { return Medium(world_.machine(machine)); }
  static EpochEntry Entry(const quorum::Promise& promise) {
    return {promise.epoch, /*nonce=*/promise.epoch.value * 100, Lsn(1),
            RingOffset(0), /*start_chain=*/0};
  }
  void Promise(int machine, const quorum::Promise& promise) {
    MediumOf(machine).Promise(promise);
    checkers().epochs.Check(machine);
  }
  // By as many as it takes, that machine among them.
  void PromiseByTwo(int machine, const quorum::Promise& promise) {
    Promise(machine, promise);
    Promise((machine + 1) % 3, promise);
  }
  void Install(int machine, const EpochEntry& entry) {
    MediumOf(machine).Install(entry);
    checkers().epochs.Check(machine);
  }
  template <class Change>
  void ChangeSuperline(int machine, const Change& change) {
    MediumOf(machine).Change(change);
    checkers().epochs.Check(machine);
  }
  template <class Change>
  void ChangeWithTable(int machine, const EpochTable& table,
                       const Change& change) {
    MediumOf(machine).ChangeWithTable(table, change);
    checkers().epochs.Check(machine);
  }
  void SetRepairing(int machine, bool repairing) {
    ChangeSuperline(machine, [&](Superline& superline) {
      superline.repairing = repairing;
    });
  }
  // Promised and installed, with its first record.
  void WriteRecord(int machine, std::byte payload) {
    PromiseByTwo(machine, kFive);
    Install(machine, Entry(kFive));
    MediumOf(machine).WriteFirstRecord(Entry(kFive), payload);
    MediumOf(machine).Mark(0, Epoch(5), Lsn(1));
  }
  // It is durable; as it lies on that medium.
  void Learn(int machine) {
    const Medium medium = MediumOf(machine);
    const RecordView record = medium.FirstRecord();
    checkers().durability.Learn(record, medium.BytesOf(record), Epoch(5));
  }
};

TEST_F(EpochCheckerTest, AConfigurationComesWithAnInstallationOnly) {
  ChangeSuperline(0,
                  [](Superline& superline) { superline.configuration.id = 2; });
  EXPECT_EQ(violated(), "P-INV-18");
}

TEST_F(EpochCheckerTest, AnEpochHasOneConfiguration) {
  for (int machine = 0; machine < 3; ++machine) Promise(machine, kFive);
  Install(0, Entry(kFive));
  EXPECT_EQ(violated(), "");
  ChangeWithTable(1, EpochTable::Empty(kLogId).With(Entry(kFive), Lsn(1)),
                  [](Superline& superline) {
                    superline.log_epoch = Epoch(5);
                    superline.configuration.id = 2;
                  });
  EXPECT_EQ(violated(), "P-INV-18");
}

TEST_F(EpochCheckerTest, AReplicaInstallsWhatNamesIt) {
  for (int machine = 0; machine < 3; ++machine) Promise(machine, kFive);
  ChangeWithTable(1, EpochTable::Empty(kLogId).With(Entry(kFive), Lsn(1)),
                  [](Superline& superline) {
                    superline.log_epoch = Epoch(5);
                    superline.configuration.members[1].incarnation += 1;
                  });
  EXPECT_EQ(violated(), "P-INV-18");
}

// Two of three stay, and one of these two has it: whoever opens the log by the
// configuration before may find none of it.
TEST_F(EpochCheckerTest, AChangeIsShownOnceEnoughOfThoseThatStayHaveIt) {
  for (int machine = 0; machine < 3; ++machine) Promise(machine, kFive);
  Install(0, Entry(kFive));
  Install(1, Entry(kFive));
  const Configuration found = [this] {
    Configuration before = world_.configuration();
    before.members[1].incarnation += 1;
    return before;
  }();
  checkers().epochs.OnOpened(Epoch(5), found, world_.configuration());
  EXPECT_EQ(violated(), "P-INV-18");
}

TEST_F(EpochCheckerTest, AnEpochThatIsOpenedAsItHasToBeViolatesNothing) {
  for (int machine = 0; machine < 3; ++machine) Promise(machine, kFive);
  SetRepairing(2, true);
  for (int machine = 0; machine < 2; ++machine) Install(machine, Entry(kFive));
  checkers().epochs.OnOpened(Epoch(5), world_.configuration(),
                             world_.configuration());
  EXPECT_TRUE(checkers().epochs.repairing(2));
  ChangeWithTable(2, EpochTable::Empty(kLogId).With(Entry(kFive), Lsn(1)),
                  [](Superline& superline) {
                    superline.log_epoch = Epoch(5);
                    superline.repairing = false;
                  });
  Promise(0, kSix);
  for (int machine = 0; machine < 3; ++machine) {
    checkers().epochs.CheckWhenIdle(machine);
  }
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(checkers().epochs.promise(0), kSix);
  EXPECT_EQ(checkers().epochs.log_epoch(0), Epoch(5));
}

// A mark of suspicion may reach the medium when nobody knows of the error any
// more; no other medium may be marked.
TEST_F(EpochCheckerTest, AMediumThatWasSuspectMayBeMarked) {
  for (int machine = 0; machine < 2; ++machine) {
    Promise(machine, kFive);
  }
  for (int machine = 0; machine < 2; ++machine) Install(machine, Entry(kFive));
  world_.store().Suspect(0, Epoch());
  world_.store().Trust(0);
  SetRepairing(0, true);
  EXPECT_EQ(violated(), "");
  SetRepairing(1, true);
  EXPECT_EQ(violated(), "P-INV-12");
}

TEST_F(EpochCheckerTest, ASuperlineThatGoesBackViolatesInvS1) {
  const Superline before = MediumOf(0).superline();
  Promise(0, kFive);
  MediumOf(0).WriteSuperline(before, 1);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "P-INV-S1");
}

TEST_F(EpochCheckerTest, TwoSuperlinesOfOneNumberViolateInvS1) {
  Superline other = MediumOf(0).superline();
  other.unsafe_shutdown_count = 1;
  MediumOf(0).WriteSuperline(other, MediumOf(0).seq());
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "P-INV-S1");
}

TEST_F(EpochCheckerTest, ASuperlineThatCannotBeReadViolatesInvS2) {
  MediumOf(0).Damage(0, 64);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "");  // the other copy makes up for it
  MediumOf(0).Damage(kSuperlineCopyBytes, 64);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "P-INV-S2");
}

TEST_F(EpochCheckerTest, CopiesOfASuperlineThatDifferWhenIdleViolateInvS2) {
  Superline next = MediumOf(0).superline();
  next.unsafe_shutdown_count = 1;
  MediumOf(0).WriteOneCopy(0, next, MediumOf(0).seq() + 1);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "");
  checkers().epochs.CheckWhenIdle(0);
  EXPECT_EQ(violated(), "P-INV-S2");
}

TEST_F(EpochCheckerTest, CopiesOfATableThatDifferWhenIdleViolateInvS2) {
  MediumOf(0).WriteOneTableCopy(0);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "");
  checkers().epochs.CheckWhenIdle(0);
  EXPECT_EQ(violated(), "P-INV-S2");
}

TEST_F(EpochCheckerTest, AWatermarkThatCannotBeReadViolatesInvS2) {
  MediumOf(0).Damage(kWatermarkOffset, 64);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "");
  MediumOf(0).Damage(kWatermarkOffset + kPageBytes, 64);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "P-INV-S2");
}

TEST_F(EpochCheckerTest, APromiseThatGoesBackViolatesA42) {
  Promise(0, kSix);
  Promise(0, kFive);
  EXPECT_EQ(violated(), "P-A4.2");
}

TEST_F(EpochCheckerTest, APromiseThatIsGivenToAnotherInstead) {
  Promise(0, kFive);
  Promise(0, {Epoch(5), kTwo});
  EXPECT_EQ(violated(), "P-A4.2");
}

TEST_F(EpochCheckerTest, AnEpochThatIsPromisedToTwoViolatesInv4) {
  Promise(0, kFive);
  Promise(1, {Epoch(5), kTwo});
  EXPECT_EQ(violated(), "P-INV-4");
}

TEST_F(EpochCheckerTest, AnEpochWithTwoNoncesViolatesInv4) {
  Promise(0, kFive);
  Promise(1, kFive);
  Install(0, Entry(kFive));
  EpochEntry other = Entry(kFive);
  ++other.nonce;
  Install(1, other);
  EXPECT_EQ(violated(), "P-INV-4");
}

TEST_F(EpochCheckerTest, TwoEpochsWithOneNonceViolateInv4) {
  PromiseByTwo(0, kFive);
  Install(0, Entry(kFive));
  PromiseByTwo(1, kSix);
  EpochEntry copied = Entry(kSix);
  copied.nonce = Entry(kFive).nonce;
  Install(1, copied);
  EXPECT_EQ(violated(), "P-INV-4");
}

TEST_F(EpochCheckerTest, AnInstallationInstalledWithItsPromiseViolatesInv6) {
  Promise(1, kFive);
  Promise(2, kFive);
  ChangeWithTable(0, EpochTable::Empty(kLogId).With(Entry(kFive), Lsn(1)),
                  [](Superline& superline) {
                    superline.promised_epoch = superline.log_epoch = Epoch(5);
                    superline.promised_node = kOne.node;
                    superline.promised_incarnation = kOne.incarnation;
                  });
  EXPECT_EQ(violated(), "P-INV-6");
}

TEST_F(EpochCheckerTest, AnInstallationUnderALaterPromiseViolatesInv6) {
  PromiseByTwo(0, kFive);
  Promise(0, kSix);
  Install(0, Entry(kFive));
  EXPECT_EQ(violated(), "P-INV-6");
}

TEST_F(EpochCheckerTest, ALogEpochThatGoesBackViolatesInv6) {
  PromiseByTwo(0, kFive);
  Install(0, Entry(kFive));
  ChangeWithTable(0, EpochTable::Empty(kLogId),
                  [](Superline& superline) { superline.log_epoch = Epoch(0); });
  EXPECT_EQ(violated(), "P-INV-6");
}

TEST_F(EpochCheckerTest, ARepairThatOutlivesItsInstallationViolatesInv12) {
  PromiseByTwo(0, kFive);
  SetRepairing(0, true);
  Install(0, Entry(kFive));
  EXPECT_EQ(violated(), "P-INV-12");
}

TEST_F(EpochCheckerTest, ARepairThatEndsWithoutAnInstallationViolatesInv12) {
  Promise(0, kFive);
  SetRepairing(0, true);
  EXPECT_EQ(violated(), "");
  SetRepairing(0, false);
  EXPECT_EQ(violated(), "P-INV-12");
}

TEST_F(EpochCheckerTest, ARepairThatBeginsWithoutAPromiseViolatesInv12) {
  PromiseByTwo(0, kFive);
  Install(0, Entry(kFive));
  SetRepairing(0, true);
  EXPECT_EQ(violated(), "P-INV-12");
}

class ReadQuorumTest : public EpochCheckerTest {
 protected:
  ReadQuorumTest() : EpochCheckerTest(/*write_quorum=*/1) {}
};

// Where not all machines have their replicas, P-A4.4 is nobody's to judge.
TEST_F(ReadQuorumTest, AnEpochThatFewerThanRHavePromisedViolatesA42) {
  world_.CutPower(world_.machine(2));
  world_.store().SetAside(2, RegionStore::Content::kBlank,
                          RegionStore::Image(world_.layout().region_bytes));
  Promise(0, kFive);
  Promise(1, kFive);
  Install(0, Entry(kFive));
  checkers().epochs.OnOpened(Epoch(5), world_.configuration(),
                             world_.configuration());
  EXPECT_EQ(violated(), "P-A4.2");
}

TEST_F(EpochCheckerTest, AnEpochThatFewerThanWHaveInstalledViolatesA46) {
  Promise(0, kFive);
  Promise(1, kFive);
  Install(0, Entry(kFive));
  checkers().epochs.OnOpened(Epoch(5), world_.configuration(),
                             world_.configuration());
  EXPECT_EQ(violated(), "P-A4.6");
}

TEST_F(EpochCheckerTest, AnInstallationThatTooFewHavePromisedViolatesA44) {
  Promise(0, kFive);
  Install(0, Entry(kFive));
  EXPECT_EQ(violated(), "P-A4.4");
}

TEST_F(EpochCheckerTest, AnotherChainAtTheHeadViolatesInv8) {
  checkers().owners.ChainKnown({Lsn(1), RingOffset(0), /*chain=*/0});
  ChangeSuperline(0, [](Superline& superline) { superline.head_chain = 1; });
  EXPECT_EQ(violated(), "P-INV-8");
}

TEST_F(EpochCheckerTest, AHeadBehindWhatNobodyCleanedViolatesL10) {
  ChangeSuperline(0, [](Superline& superline) { superline.head_lsn = Lsn(2); });
  EXPECT_EQ(violated(), "P-L10");
}

TEST_F(EpochCheckerTest, AHeadThatGoesBackIsToldToItsChecker) {
  world_.history().MayBeCleanedThrough(1, Lsn(5));
  ChangeSuperline(0, [](Superline& superline) { superline.head_lsn = Lsn(3); });
  ChangeSuperline(0, [](Superline& superline) { superline.head_lsn = Lsn(2); });
  EXPECT_EQ(violated(), "P-A6");
}

TEST_F(EpochCheckerTest, ARecordThatIsProvenAndThereViolatesNothing) {
  WriteRecord(0, std::byte{1});
  Learn(0);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().records_on_media, 1u);
}

TEST_F(EpochCheckerTest, ARecordThatIsProvenAndBrokenViolatesInv3) {
  WriteRecord(0, std::byte{1});
  MediumOf(0).Damage(world_.layout().ring_offset + kRingLine, 8);
  checkers().epochs.Check(0);
  EXPECT_EQ(violated(), "P-INV-3");
}

TEST_F(EpochCheckerTest, ARecordThatIsNotTheDurableOneViolatesInv3) {
  WriteRecord(0, std::byte{1});
  Learn(0);
  WriteRecord(1, std::byte{2});
  checkers().epochs.Check(1);
  EXPECT_EQ(violated(), "P-INV-3");
}

}  // namespace
}  // namespace alpheus::sim
