// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/power_cut.h"

#include <cstdint>

#include "log/base/bytes.h"

namespace alpheus::sim {

std::vector<std::byte> DrawPowerCut(const model::ModelPersistence& pmem,
                                    RandomSource& random) {
  const std::vector<model::ModelPersistence::DirtyWord> words =
      pmem.DirtyWords();
  if (words.empty()) return pmem.CutKeepingNone();
  std::vector<uint8_t> choices(words.size());
  const uint64_t way = random.Below(6);
  const uint64_t pivot = random.Below(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    const model::ModelPersistence::DirtyWord& word = words[i];
    const bool same_line =
        word.offset / kLineBytes == words[pivot].offset / kLineBytes;
    bool keep = false;
    switch (way) {
      case 0:
        break;
      case 1:
        keep = true;
        break;
      case 2:
        keep = i != pivot;
        break;
      case 3:
        keep = !same_line;
        break;
      case 4:
        keep = i <= pivot;
        break;
      default:
        choices[i] = static_cast<uint8_t>(random.Below(word.values.size()));
        continue;
    }
    choices[i] = keep ? word.current : 0;
  }
  return pmem.CutChoosing(words, choices);
}

}  // namespace alpheus::sim
