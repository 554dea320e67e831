// SPDX-License-Identifier: Apache-2.0
// power_cut: draws one of the images that a power cut may leave.
//
// Thread safety: one thread.
// References: crash_model.h; docs/verify/testing.md, "The crash model".
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_POWER_CUT_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_POWER_CUT_H_

#include <cstddef>
#include <vector>

#include "log/base/random.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::sim {

// Draws an image in one of several ways, since bugs need each: nothing
// unfenced; everything; all but a word; all but a line; everything before a
// place; each word at random.
std::vector<std::byte> DrawPowerCut(const model::ModelPersistence& pmem,
                                    RandomSource& random);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_POWER_CUT_H_
