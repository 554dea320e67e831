// SPDX-License-Identifier: Apache-2.0
// power_cut: one of the images that a power cut may leave, by lot.
//
// Thread safety: one thread.
// References: crash_model.h; design of the tests, section 1.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_POWER_CUT_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_POWER_CUT_H_

#include <cstddef>
#include <vector>

#include "log/base/random.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::sim {

// As bugs need it as often as by word: nothing that was not fenced; everything;
// all but a word; all but a line; what lies before a place; each word by lot.
std::vector<std::byte> DrawPowerCut(const ModelPersistence& pmem,
                                    RandomSource& random);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_POWER_CUT_H_
