// SPDX-License-Identifier: Apache-2.0
// conformance: what every fabric must promise, FB1 to FB8 of fabric.h.
//
// A fabric's test file instantiates FabricConformanceTest with its worlds and
// is linked with conformance*.cc:
//   INSTANTIATE_TEST_SUITE_P(Sim, FabricConformanceTest, ...);
// Cases post, then pass until what they wait for has come; after each pass all
// adapters are polled. They wait for at most kWaitNanos of the world's clock.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_CONFORMANCE_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replication/fabric/fabric.h"
#include "tests/replication/fabric/world.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {

struct ConformanceParam {
  std::string name;
  MakeFabricWorld make;
};

inline std::string ConformanceParamName(
    const ::testing::TestParamInfo<ConformanceParam>& info) {
  return info.param.name;
}

// Registered memory of one host, between guards.
struct TestRegion {
  std::span<std::byte> bytes;
  fabric::RegionKey key;

  fabric::LocalBytes Local(uint64_t offset, uint64_t count) const {
    return {key, bytes.subspan(offset, count)};
  }
  fabric::LocalBytes Local() const { return {key, bytes}; }
  fabric::RemoteAddress At(uint64_t offset) const { return {key, offset}; }
  uint64_t Word(uint64_t offset) const;
  void SetWord(uint64_t offset, uint64_t value) const;
  void Fill(int value) const;
  bool IsAll(int value) const;
};

// Both ends of an established connection.
struct TestLink {
  int host = 0;  // the one that connected
  int peer = 0;
  fabric::ConnectionId at_host;
  fabric::ConnectionId at_peer;
};

class FabricConformanceTest
    : public ::testing::TestWithParam<ConformanceParam> {
 protected:
  static constexpr int64_t kWaitNanos = kPatienceNanos;
  static constexpr int kGuard = 0x5a;

  void SetUp() override;
  // No byte between regions was touched (FB4).
  void TearDown() override;

  fabric::Fabric& fabric(int host) { return world_->fabric(host); }

  // One pass of the world, and a poll of every adapter. False when nothing is
  // in flight and nothing came.
  bool Pass();
  // Passes until `done`; false if it can't come any more.
  bool Until(const std::function<bool()>& done);
  // Passes until nothing is in flight or, in real time, for a good while.
  void Settle();

  // Whether it holds now or, where completions of writes come before, in a
  // while (FB8).
  bool BecomesVisible(const std::function<bool()>& landed);

  // A region of `bytes` zeroes that starts on a multiple of 8.
  TestRegion MakeRegion(int host, uint64_t bytes, fabric::RemoteAccess access);

  // Listens once per host.
  std::string Listening(int host);
  // The next event of this kind at the host; a failed test if none comes.
  fabric::ConnectionEvent Await(int host, fabric::ConnectionEvent::Kind kind);
  bool HasEvent(int host, fabric::ConnectionEvent::Kind kind,
                fabric::ConnectionId connection);
  TestLink Link(int host, int peer);

  // The next completion of that connection or operation at the host.
  fabric::Completion Next(int host, fabric::ConnectionId connection);
  fabric::Completion NextReceive(int host, fabric::ConnectionId connection);
  size_t CompletionsOf(int host, fabric::ConnectionId connection);
  // Posts one operation on a connection of its own from host 0 to host 1, where
  // a receive is posted, and expects it to end so; refused, it must break the
  // connection at both ends.
  void ExpectOutcome(
      const std::function<absl::Status(fabric::ConnectionId)>& post,
      fabric::CompletionStatus expected);
  // Both ends have learnt that the connection is broken.
  void ExpectBrokenAtBothEnds(const TestLink& link);

  std::unique_ptr<FabricWorld> world_;
  std::vector<std::deque<fabric::Completion>> completions_;  // [hosts]
  std::vector<std::deque<fabric::ConnectionEvent>> events_;  // [hosts]

 private:
  struct Arena {
    WorldMemory memory;
    uint64_t bytes = 0;  // of the region in the middle
  };
  fabric::Completion TakeFirst(
      int host, const std::function<bool(const fabric::Completion&)>&);

  std::vector<Arena> arenas_;
  std::map<int, std::string> addresses_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_CONFORMANCE_H_
