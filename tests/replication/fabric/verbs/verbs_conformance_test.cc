// SPDX-License-Identifier: Apache-2.0
// An adapter with RDMA keeps every fabric's promises, and clients of a node's
// memory work over it. Where this machine has
// none the cases skip themselves; tools/dev vm-test runs them in a guest.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/api/remote/memory_conformance.h"
#include "tests/replication/fabric/conformance.h"
#include "tests/replication/fabric/verbs/verbs_world.h"

namespace alpheus::testing {
namespace {

std::unique_ptr<FabricWorld> MakeWorld() {
  auto world = VerbsWorld::Make();
  if (!world.ok()) {
    ADD_FAILURE() << world.status();
    return nullptr;
  }
  return *std::move(world);
}

INSTANTIATE_TEST_SUITE_P(Verbs, FabricConformanceTest,
                         ::testing::Values(ConformanceParam{"Device",
                                                            MakeWorld}),
                         ConformanceParamName);
INSTANTIATE_TEST_SUITE_P(Verbs, MemoryConformanceTest,
                         ::testing::Values(MakeFabricWorld(MakeWorld)));

}  // namespace
}  // namespace alpheus::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (alpheus::testing::VerbsWorld::Addresses().empty()) {
    std::printf(
        "skipped because ALPHEUS_VERBS_ADDRESSES names no address of an RDMA "
        "device; tools/dev vm-test runs these cases in a guest\n");
    return 0;
  }
  return RUN_ALL_TESTS();
}
