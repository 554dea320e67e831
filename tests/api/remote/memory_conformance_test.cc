// SPDX-License-Identifier: Apache-2.0
// Clients of a node's memory over the software adapter.
#include "tests/api/remote/memory_conformance.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/replication/fabric/tcp/tcp_world.h"

namespace alpheus::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Tcp, MemoryConformanceTest,
    ::testing::Values(MakeFabricWorld([] {
                        return std::make_unique<TcpWorld>();
                      }),
                      MakeFabricWorld([] {
                        return std::make_unique<TcpWorld>(
                            std::vector<std::string>(), true);
                      })));

}  // namespace
}  // namespace alpheus::testing
