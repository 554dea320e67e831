// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/run/shrinker.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace alpheus::sim {
namespace {

class Shrinker {
 public:
  Shrinker(const ShrinkCase& failing, const ShrinkOptions& options,
           const std::function<bool(const ShrinkCase&)>& fails)
      : best_(failing), options_(options), fails_(fails) {}

  Shrunk Run() {
    // Each may make room for the other.
    for (ShrinkCase before; before != best_ && !IsSpent();) {
      before = best_;
      DropFaults();
      SimplifyOthers();
    }
    return {best_, tries_};
  }

 private:
  bool IsSpent() const { return tries_ >= options_.tries_max; }

  // True: the case fails, and is the best from here on.
  bool Try(ShrinkCase smaller) {
    if (IsSpent()) return false;
    ++tries_;
    if (!fails_(smaller)) return false;
    best_ = std::move(smaller);
    return true;
  }

  bool TryWithout(size_t begin, size_t end) {
    ShrinkCase smaller = best_;
    smaller.faults.erase(std::next(smaller.faults.begin(), Distance(begin)),
                         std::next(smaller.faults.begin(), Distance(end)));
    return Try(std::move(smaller));
  }

  static std::ptrdiff_t Distance(size_t n) {
    return static_cast<std::ptrdiff_t>(n);
  }

  void DropFaults() {
    size_t part = best_.faults.size();
    while (part != 0 && !IsSpent()) {
      bool any = false;
      // From the end: late faults matter least.
      for (size_t end = best_.faults.size(); end != 0 && !IsSpent();) {
        const size_t begin = end - std::min(part, end);
        any |= TryWithout(begin, end);
        end = begin;
      }
      // One by one until none can go.
      if (part == 1 && any) continue;
      part /= 2;
    }
  }

  void SimplifyOthers() {
    TryWith([](ShrinkCase& smaller) { smaller.breaks = false; });
    TryWith([](ShrinkCase& smaller) { smaller.yields = false; });
    while (TryWith([](ShrinkCase& smaller) {
      smaller.clients = std::max(1, smaller.clients / 2);
    })) {
    }
    while (TryWith([this](ShrinkCase& smaller) {
      smaller.payload_bytes_max =
          std::max(options_.payload_bytes_min, smaller.payload_bytes_max / 2);
    })) {
    }
  }

  template <class Change>
  bool TryWith(const Change& change) {
    ShrinkCase smaller = best_;
    change(smaller);
    return smaller != best_ && Try(std::move(smaller));
  }

  ShrinkCase best_;
  const ShrinkOptions options_;
  const std::function<bool(const ShrinkCase&)>& fails_;
  int tries_ = 0;
};

}  // namespace

Shrunk Shrink(const ShrinkCase& failing, const ShrinkOptions& options,
              const std::function<bool(const ShrinkCase&)>& fails) {
  return Shrinker(failing, options, fails).Run();
}

}  // namespace alpheus::sim
