// SPDX-License-Identifier: Apache-2.0
// model_persistence_fixture: four lines of modelled memory, and what a power
// cut may leave of a word of them.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_TOOLS_MODEL_MEMORY_MODEL_PERSISTENCE_FIXTURE_H_
#define ALPHEUS_TESTS_TOOLS_MODEL_MEMORY_MODEL_PERSISTENCE_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "log/base/bytes.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::model {

using Values = std::vector<uint64_t>;

class ModelPersistenceTest : public ::testing::Test {
 protected:
  uint64_t* Word(size_t index) {
    return reinterpret_cast<uint64_t*>(model_.region().data()) + index;
  }

  // The values that a power cut may leave of the word now; the floor first.
  Values Possible(size_t index) {
    for (const auto& word : model_.DirtyWords()) {
      if (word.offset == index * 8) return word.values;
    }
    uint64_t floor = 0;
    std::memcpy(&floor, model_.persistent().data() + index * 8, 8);
    return {floor};
  }

  void StoreNt(size_t line, uint64_t value) {
    std::array<uint64_t, 8> words;
    words.fill(value);
    model_.CopyLinesNt(Word(line * 8), words.data(), 1);
  }

  void FlushAs(uint32_t thread, size_t index) {
    model_.SetThread(thread);
    model_.Flush(Word(index), 8);
  }
  bool FenceAs(uint32_t thread) {
    model_.SetThread(thread);
    return model_.Fence();
  }

  ModelPersistence model_{4 * kLineBytes};
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TESTS_TOOLS_MODEL_MEMORY_MODEL_PERSISTENCE_FIXTURE_H_
