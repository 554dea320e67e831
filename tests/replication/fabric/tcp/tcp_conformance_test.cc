// SPDX-License-Identifier: Apache-2.0
// The software adapter over TCP keeps every fabric's promises.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/replication/fabric/conformance.h"
#include "tests/replication/fabric/tcp/tcp_world.h"

namespace alpheus::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Tcp, FabricConformanceTest,
    ::testing::Values(
        ConformanceParam{"Loopback",
                         [] { return std::make_unique<TcpWorld>(); }},
        ConformanceParam{
            "Encrypted",
            [] {
              return std::make_unique<TcpWorld>(std::vector<std::string>{
                  "test://host/0", "test://host/1", "test://host/2"});
            }}),
    ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
