// SPDX-License-Identifier: Apache-2.0
// replica_fixture: a replica that is open, and a log of one, two or three
// epochs to be installed there.
#ifndef ALPHEUS_TESTS_RECOVERY_REPLICA_REPLICA_FIXTURE_H_
#define ALPHEUS_TESTS_RECOVERY_REPLICA_REPLICA_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "log/format/atomic_cell.h"
#include "tests/recovery/replica/replica_world.h"

namespace alpheus::testing {

class ReplicaTest : public ::testing::Test {
 protected:
  ReplicaTest() { EXPECT_TRUE(world_.Open().ok()); }

  recovery::LocalReplica<model::ModelPersistence>& replica() {
    return world_.replica();
  }
  // Appends a and b in epoch 5.
  void MakeLog() {
    log_.OpenEpoch(Epoch(5));
    log_.Append("a");
    log_.Append("b");
  }
  // MakeLog, installed as epoch 6.
  void InstallLog() {
    MakeLog();
    log_.OpenEpoch(Epoch(6));
    const absl::Status installed = world_.InstallAll(log_);
    ASSERT_TRUE(installed.ok()) << installed;
  }
  // Both copies of the superline, changed by nobody who may.
  void CraftSuperline(const std::function<void(Superline&)>& change,
                      uint64_t seq = 1000) {
    Superline crafted = world_.State().superline;
    change(crafted);
    ASSERT_TRUE(WriteCell(world_.pmem(), SuperlinePlace(world_.region()), 0,
                          seq, EncodeSuperline(crafted)));
  }
  // `call` fails so, and changes no byte.
  void ExpectRefused(const std::function<absl::Status()>& call,
                     absl::StatusCode code, const std::string& says) {
    const std::vector<std::byte> before = world_.Snapshot();
    const absl::Status refused = call();
    EXPECT_EQ(refused.code(), code) << refused;
    EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr(says));
    EXPECT_EQ(world_.Snapshot(), before);
  }
  void ExpectInstallRefused(const recovery::Installation& installation,
                            absl::StatusCode code, const std::string& says) {
    ExpectRefused([&] { return replica().Install(installation); }, code, says);
  }
  // Flips a bit of the record at `lsn`, `byte` bytes behind its start.
  void Damage(Lsn lsn, size_t byte) {
    replica().ring().At(log_.PositionOf(lsn).offset)[byte] ^= std::byte{1};
  }

  ReplicaWorld world_;
  LogImage log_{1024};
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_REPLICA_REPLICA_FIXTURE_H_
