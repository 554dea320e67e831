// SPDX-License-Identifier: Apache-2.0
// verbs_guest_test: what the verbs fabric does where adapters, peers and their
// processes fail: more than the conformance suite asks of every fabric. For
// guests (tests/vm/suites.py); the helpers are the conformance suite's.
#ifndef ALPHEUS_TESTS_VM_VERBS_GUEST_TEST_H_
#define ALPHEUS_TESTS_VM_VERBS_GUEST_TEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/replication/fabric/conformance.h"
#include "tests/replication/fabric/verbs/verbs_world.h"
#include "tests/vm/old_primary.h"

namespace alpheus::testing {

// Three adapters, as each of these suites has them.
ConformanceParam GuestParam();

class VerbsGuestTest : public FabricConformanceTest {
 protected:
  fabric::verbs::VerbsFabric& verbs(int host) {
    return static_cast<VerbsWorld&>(*world_).fabric(host);
  }

  // From host 0 to host 1.
  OldPrimaryPlan Plan() {
    const std::vector<std::string> hosts = VerbsWorld::Addresses();
    return {.address = Listening(1), .host = hosts[0], .device = "rxe0"};
  }

  // Returns the count of that name that the host's adapter keeps of itself.
  uint64_t AdapterCounter(int host, const std::string& name);
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_VM_VERBS_GUEST_TEST_H_
