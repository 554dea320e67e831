// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/verbs_guest_test.h"

#include <cstdio>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"

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

}  // namespace

ConformanceParam GuestParam() { return {"Device", MakeWorld}; }

uint64_t VerbsGuestTest::AdapterCounter(int host, const std::string& name) {
  const std::string path =
      absl::StrCat("/sys/class/infiniband/", verbs(host).device(),
                   "/ports/1/hw_counters/", name);
  std::ifstream file(path);
  uint64_t count = 0;
  EXPECT_TRUE(file >> count) << path;
  return count;
}

}  // namespace alpheus::testing

int main(int argc, char** argv) {
  int status = 0;
  if (alpheus::testing::RanAsOldPrimary(argc, argv, &status)) return status;
  ::testing::InitGoogleTest(&argc, argv);
  if (alpheus::testing::VerbsWorld::Addresses().size() < 3) {
    std::printf(
        "skipped because ALPHEUS_VERBS_ADDRESSES names no three addresses of "
        "RDMA devices; tools/dev vm-test runs these cases in a guest\n");
    return 0;
  }
  return RUN_ALL_TESTS();
}
