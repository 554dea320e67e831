// SPDX-License-Identifier: Apache-2.0
#include "api/client/locate/primary_search.h"

#include <algorithm>
#include <utility>

namespace alpheus::client {

PrimarySearch::PrimarySearch(std::vector<std::string> addresses,
                             const SearchTimes& times,
                             std::function<uint64_t(uint64_t)> random)
    : addresses_(std::move(addresses)),
      times_(times),
      random_(std::move(random)) {
  // Not all clients begin with the same node.
  std::ranges::rotate(
      addresses_,
      addresses_.begin() + static_cast<ptrdiff_t>(random_(addresses_.size())));
}

PrimarySearch::Step PrimarySearch::Next(int64_t now_ns) {
  Step step = {{}, now_ns};
  if (std::exchange(is_found_, false)) step.not_before_ns += Rest();
  if (!hint_.empty() && tried_.insert(hint_).second) {  // PSR2
    asked_ = step.address = std::exchange(hint_, {});
    return step;
  }
  while (next_ < addresses_.size() && tried_.contains(addresses_[next_])) {
    ++next_;
  }
  if (next_ == addresses_.size()) {
    step.not_before_ns += Rest();
    BeginRound();
  }
  asked_ = step.address = addresses_[next_];
  tried_.insert(asked_);
  return step;
}

void PrimarySearch::NotPrimary(const std::string& hint) { hint_ = hint; }

int64_t PrimarySearch::Rest() {
  rest_ns_ = rest_ns_ == 0 ? times_.rest_min_ns
                           : std::min(2 * rest_ns_, times_.rest_max_ns);
  return rest_ns_ / 2 +
         static_cast<int64_t>(random_(static_cast<uint64_t>(rest_ns_ / 2) + 1));
}

void PrimarySearch::Answered() {
  rest_ns_ = 0;
  is_found_ = false;
}

void PrimarySearch::Found() {
  is_found_ = true;
  BeginRound();
  // It may be a node that only others knew.
  hint_ = asked_;
}

void PrimarySearch::BeginRound() {
  next_ = 0;
  tried_.clear();
  hint_.clear();
}

}  // namespace alpheus::client
