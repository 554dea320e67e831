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

const std::vector<std::string>& Names() {
  static const std::vector<std::string> names = {
      "test://host/0", "test://host/1", "test://host/2"};
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    Tcp, FabricConformanceTest,
    ::testing::Values(
        ConformanceParam{"Loopback",
                         [] { return std::make_unique<TcpWorld>(); }},
        ConformanceParam{"Encrypted",
                         [] { return std::make_unique<TcpWorld>(Names()); }},
        ConformanceParam{"Trunks",
                         [] {
                           return std::make_unique<TcpWorld>(
                               std::vector<std::string>(), true);
                         }},
        ConformanceParam{
            "EncryptedTrunks",
            [] { return std::make_unique<TcpWorld>(Names(), true); }}),
    ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
