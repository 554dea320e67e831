// SPDX-License-Identifier: Apache-2.0
// memory_conformance: clients of a node's memory on any fabric. A program that
// has a world of a fabric instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Tcp, MemoryConformanceTest, Values(MakeWorld));
#ifndef ALPHEUS_TESTS_API_REMOTE_MEMORY_CONFORMANCE_H_
#define ALPHEUS_TESTS_API_REMOTE_MEMORY_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/remote/memory_client.h"
#include "api/remote/memory_server.h"
#include "log/base/random.h"
#include "log/base/wall_clock.h"
#include "log/pmem/libpmem_persistence.h"
#include "tests/replication/fabric/world.h"

namespace alpheus::testing {

class MemoryConformanceTest : public ::testing::TestWithParam<MakeFabricWorld> {
 protected:
  MemoryConformanceTest();
  ~MemoryConformanceTest() override;

  // Waits until it is open, or over.
  void Open(const std::string& token);
  // Lets things happen until `is_done`, or nothing can happen any more.
  bool Run(const std::function<bool()>& is_done);

  // The clock of the world.
  class WorldClock final : public Clock {
   public:
    explicit WorldClock(FabricWorld& world) : world_(world) {}
    int64_t NowNanos() const override { return world_.NowNanos(); }

   private:
    FabricWorld& world_;
  };

  std::unique_ptr<FabricWorld> world_;
  WorldClock clock_;
  Random random_{/*seed=*/11};
  LibpmemPersistence pmem_{{}};
  WorldMemory ring_;
  WorldMemory inbox_;
  std::optional<rpc::Access> access_;
  std::unique_ptr<remote::MemoryServer> server_;
  std::string address_;
  std::unique_ptr<remote::MemoryClient> client_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_REMOTE_MEMORY_CONFORMANCE_H_
