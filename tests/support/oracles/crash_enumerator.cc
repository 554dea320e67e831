// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/crash_enumerator.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "log/base/bytes.h"
#include "log/base/mix.h"

namespace alpheus::testing {
namespace {

constexpr size_t kWordBytes = 8;
// Beyond this many lines, subsets of whole lines become single lines.
constexpr size_t kLineSubsetsMax = 8;
// Beyond this many words, pairs become neighbours.
constexpr size_t kPairWordsMax = 32;

// Zero words count nothing: most of a region is zeros.
uint64_t HashOfWord(size_t offset, uint64_t value) {
  return value == 0 ? 0 : Mix(offset + 1, value);
}

}  // namespace

std::string CrashState::Describe() const {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    char line[96];
    std::snprintf(line, sizeof(line), "    word at %6zu:", words[i].offset);
    text += line;
    for (size_t v = 0; v < words[i].values.size(); ++v) {
      std::snprintf(line, sizeof(line), " %c%016" PRIx64 "%s",
                    v == choices[i] ? '[' : ' ', words[i].values[v],
                    v == choices[i] ? "]" : "");
      text += line;
    }
    text += choices[i] == 0                  ? "  dropped\n"
            : choices[i] == words[i].current ? "  kept\n"
                                             : "  between\n";
  }
  return text;
}

uint64_t CrashEnumerator::HashOf(std::span<const std::byte> image) {
  uint64_t hash = 0;
  for (size_t at = 0; at < image.size(); at += kWordBytes) {
    uint64_t value = 0;
    std::memcpy(&value, image.data() + at, kWordBytes);
    hash ^= HashOfWord(at, value);
  }
  return hash;
}

void CrashEnumerator::Enumerate(const model::ModelPersistence& model,
                                uint64_t context, Visit visit) {
  context_ = Mix(context);
  visit_ = &visit;
  words_ = model.DirtyWords();
  choices_.assign(words_.size(), 0);
  const std::span<const std::byte> floor = model.persistent();
  image_.assign(floor.begin(), floor.end());
  hash_ = HashOf(image_);

  ++counts_.points;
  counts_.words_max = std::max(counts_.words_max, words_.size());
  uint64_t product = 1;
  for (const auto& word : words_) {
    product *= word.values.size();
    if (product > options_.product_max) break;
  }
  if (product <= options_.product_max) {
    ++counts_.exhaustive_points;
    VisitProduct();
  } else {
    VisitPatterns();
  }
  visit_ = nullptr;
}

void CrashEnumerator::VisitProduct() {
  // An odometer: on average fewer than two words change from one to the next.
  for (;;) {
    VisitOnce();
    size_t i = 0;
    while (i < words_.size() && choices_[i] + 1u == words_[i].values.size()) {
      Choose(i++, 0);
    }
    if (i == words_.size()) return;
    Choose(i, choices_[i] + 1);
  }
}

void CrashEnumerator::VisitPatterns() {
  VisitAroundEachWord();
  VisitRuns();
  VisitLines();
  VisitPairs();
  VisitRandom();
}

void CrashEnumerator::VisitAroundEachWord() {
  for (const bool keep : {false, true}) {
    ChooseAll(keep);
    VisitOnce();
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint8_t before = choices_[i];
      for (size_t v = 0; v < words_[i].values.size(); ++v) {
        Choose(i, static_cast<uint8_t>(v));
        VisitOnce();
      }
      Choose(i, before);
    }
  }
}

void CrashEnumerator::VisitRuns() {
  for (const bool keep_prefix : {true, false}) {
    ChooseAll(!keep_prefix);
    for (size_t i = 0; i < words_.size(); ++i) {
      ChooseRange(i, i + 1, keep_prefix);
      VisitOnce();
    }
  }
}

void CrashEnumerator::VisitLines() {
  std::vector<size_t> starts;  // of each line's words
  for (size_t i = 0; i < words_.size(); ++i) {
    if (i == 0 ||
        words_[i].offset / kLineBytes != words_[i - 1].offset / kLineBytes) {
      starts.push_back(i);
    }
  }
  const size_t lines = starts.size();
  starts.push_back(words_.size());
  if (lines <= kLineSubsetsMax) {
    for (uint32_t kept = 0; kept < 1u << lines; ++kept) {
      for (size_t line = 0; line < lines; ++line) {
        ChooseRange(starts[line], starts[line + 1], (kept >> line & 1) != 0);
      }
      VisitOnce();
    }
    return;
  }
  for (const bool keep : {false, true}) {
    ChooseAll(keep);
    for (size_t line = 0; line < lines; ++line) {
      ChooseRange(starts[line], starts[line + 1], !keep);
      VisitOnce();
      ChooseRange(starts[line], starts[line + 1], keep);
    }
  }
}

void CrashEnumerator::VisitPairs() {
  const size_t n = words_.size();
  for (const bool keep : {false, true}) {
    ChooseAll(keep);
    for (size_t i = 0; i < n; ++i) {
      ChooseRange(i, i + 1, !keep);
      const size_t end = n <= kPairWordsMax ? n : std::min(n, i + 2);
      for (size_t j = i + 1; j < end; ++j) {
        ChooseRange(j, j + 1, !keep);
        VisitOnce();
        ChooseRange(j, j + 1, keep);
      }
      ChooseRange(i, i + 1, keep);
    }
  }
}

void CrashEnumerator::VisitRandom() {
  for (int n = 0; n < options_.random_images; ++n) {
    for (size_t i = 0; i < words_.size(); ++i) {
      Choose(i, static_cast<uint8_t>(random_.Below(words_[i].values.size())));
    }
    VisitOnce();
  }
}

void CrashEnumerator::Choose(size_t i, uint8_t choice) {
  if (choices_[i] == choice) return;
  const auto& word = words_[i];
  hash_ ^= HashOfWord(word.offset, word.values[choices_[i]]) ^
           HashOfWord(word.offset, word.values[choice]);
  choices_[i] = choice;
  std::memcpy(image_.data() + word.offset, &word.values[choice], kWordBytes);
}

void CrashEnumerator::ChooseAll(bool keep) {
  ChooseRange(0, words_.size(), keep);
}

void CrashEnumerator::ChooseRange(size_t first, size_t end, bool keep) {
  for (size_t i = first; i < end; ++i) Choose(i, keep ? Current(i) : 0);
}

void CrashEnumerator::VisitOnce() {
  ++counts_.images;
  if (!seen_.insert(hash_ ^ context_).second) return;
  ++counts_.distinct;
  (*visit_)({image_, hash_, words_, choices_});
}

}  // namespace alpheus::testing
