// SPDX-License-Identifier: Apache-2.0
#include "tools/model/methods/row_exploration.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

namespace alpheus::model {
namespace {

class RowExploration {
 public:
  RowExploration(const RowWorld::Options& options, replication::UpdateKind kind,
                 std::span<const replication::Step> steps)
      : options_(options), kind_(kind), steps_(steps) {}

  RowResult Run() {
    std::vector<size_t> way;
    Visit(way);
    result_.states = seen_.size();
    return result_;
  }

 private:
  // Worlds can't be copied: each visit repeats the way to its state.
  void Visit(std::vector<size_t>& way) {
    size_t moves = 0;
    {
      RowWorld world(options_, steps_);
      for (const size_t move : way) world.Make(move);
      if (!seen_.insert(world.Name()).second) return;
      moves = world.move_count();
      Judge(world, moves == 0);
    }
    for (size_t move = 0; move < moves; ++move) {
      if (result_.verdict == RowVerdict::kLoss) return;
      way.push_back(move);
      Visit(way);
      way.pop_back();
    }
  }

  void Judge(RowWorld& world, bool is_at_end) {
    const bool is_done = world.requester_is_done();
    if (is_at_end && !is_done) Worsen(RowVerdict::kEndless);
    const bool is_compound = kind_ == replication::UpdateKind::kCompound;
    for (const RowWorld::Found& found : world.Cut()) {
      ++result_.images;
      const bool is_whole = found.a && (found.b || !is_compound);
      if (is_done && !is_whole) Worsen(RowVerdict::kLoss);
      if (found.b && !found.a) Worsen(RowVerdict::kOrder);
    }
  }

  void Worsen(RowVerdict verdict) {
    result_.verdict = std::max(result_.verdict, verdict);
  }

  const RowWorld::Options options_;
  const replication::UpdateKind kind_;
  const std::span<const replication::Step> steps_;
  RowResult result_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

const char* RowVerdictName(RowVerdict verdict) {
  switch (verdict) {
    case RowVerdict::kOk:
      return "OK";
    case RowVerdict::kEndless:
      return "ENDLESS";
    case RowVerdict::kOrder:
      return "ORDER";
    case RowVerdict::kLoss:
      return "LOSS";
  }
  return "?";
}

RowResult ExploreRow(const RowWorld::Options& options,
                     replication::UpdateKind kind,
                     std::span<const replication::Step> steps) {
  return RowExploration(options, kind, steps).Run();
}

}  // namespace alpheus::model
