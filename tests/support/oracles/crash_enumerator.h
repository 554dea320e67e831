// SPDX-License-Identifier: Apache-2.0
// crash_enumerator: tries the images that a power cut may leave of modelled
// memory, each once.
//
// Idea: the model (tools/model/memory/crash_model.h) says which words are open
// and which values each may have. Few open words: the whole product. Many: the
// patterns in which known bugs hide (nothing, everything, one word lost, one
// word kept, prefixes and suffixes, whole lines, pairs) and a seeded random
// rest. Neighbouring images differ in few words, so that image and hash are
// changed in place and an image that was seen before costs a few nanoseconds.
//
// Invariants:
//   CE1. Every visited image is one that the model allows.
//   CE2. Up to `product_max` images per point, all of them are visited.
//   CE3. An image is visited once per context, over all points.
// Thread safety: one thread.
// References: docs/verify/testing.md, "The crash model".
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_CRASH_ENUMERATOR_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_CRASH_ENUMERATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "log/base/random.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

// One image; valid while the visitor runs.
struct CrashState {
  std::span<const std::byte> image;
  uint64_t hash = 0;  // of the image
  std::span<const model::ModelPersistence::DirtyWord> words;
  std::span<const uint8_t> choices;  // words[i].values[choices[i]]

  // The words that are open, one a line: offset, values, which one was kept.
  std::string Describe() const;
};

class CrashEnumerator {
 public:
  struct Options {
    // Largest product of possible values that is tried in full: 12 words of
    // two values each.
    uint64_t product_max = 1 << 12;
    // Drawn where the product is larger.
    int random_images = 64;
    uint64_t seed = 1;
  };
  struct Counts {
    uint64_t points = 0;             // calls of Enumerate
    uint64_t exhaustive_points = 0;  // of them, with the whole product
    uint64_t images = 0;             // generated
    uint64_t distinct = 0;           // visited
    size_t words_max = 0;            // most open words at one point
  };
  using Visit = absl::FunctionRef<void(const CrashState&)>;

  explicit CrashEnumerator(const Options& options)
      : options_(options), random_(options.seed) {}

  // Visits the images that a power cut could leave now. `context` stands for
  // whatever else the visitor's verdict depends on (what must be recovered):
  // an image is visited again under another context. `visit` may use the
  // model's const members, and enumerate other models with other enumerators.
  void Enumerate(const model::ModelPersistence& model, uint64_t context,
                 Visit visit);

  const Counts& counts() const { return counts_; }

  // Returns the hash of an image (CrashState::hash), from scratch.
  static uint64_t HashOf(std::span<const std::byte> image);

 private:
  using Words = std::vector<model::ModelPersistence::DirtyWord>;

  void VisitProduct();
  void VisitPatterns();
  void VisitAroundEachWord();
  void VisitRuns();
  void VisitLines();
  void VisitPairs();
  void VisitRandom();

  // Makes the image hold values[choice] of the i-th word.
  void Choose(size_t i, uint8_t choice);
  void ChooseAll(bool keep);
  // Keeps the current value of words [first, end), or drops it.
  void ChooseRange(size_t first, size_t end, bool keep);
  uint8_t Current(size_t i) const { return words_[i].current; }
  void VisitOnce();

  const Options options_;
  Random random_;
  Counts counts_;
  absl::flat_hash_set<uint64_t> seen_;

  // The state of the call that runs.
  uint64_t context_ = 0;
  const Visit* visit_ = nullptr;
  Words words_;
  std::vector<uint8_t> choices_;
  std::vector<std::byte> image_;
  uint64_t hash_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_CRASH_ENUMERATOR_H_
