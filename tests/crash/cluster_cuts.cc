// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/cluster_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/region_state.h"
#include "quorum/arithmetic/quorum.h"
#include "tests/support/oracles/crash_enumerator.h"
#include "tools/sim/faults/power_cut.h"

namespace alpheus::testing {
namespace {

using Model = model::ModelPersistence;
using Primary = OpeningWorld::Primary;

bool HasFailure() { return ::testing::Test::HasFailure(); }

uint64_t Mix(uint64_t hash, uint64_t value) {
  return (std::rotl(hash, 23) ^ value) * 0x9e3779b97f4a7c15u;
}

}  // namespace

void ClusterOracle::Clean(uint64_t lsn) {
  if (lsn > cleaned) cleaned_beyond.insert(lsn);
  while (cleaned_beyond.erase(cleaned + 1) != 0) ++cleaned;
}

void ClusterOracle::CleanThrough(uint64_t lsn) {
  while (cleaned < lsn) Clean(cleaned + 1);
}

void ClusterOracle::Show(uint64_t last) {
  written.erase(written.upper_bound(last), written.end());
  cleaned_beyond.erase(cleaned_beyond.upper_bound(last), cleaned_beyond.end());
  cleaned = std::min(cleaned, last);
  durable = last;
}

uint64_t ClusterOracle::Hash() const {
  uint64_t hash = Mix(Mix(durable, cleaned), emptied);
  for (const auto& [lsn, text] : written) {
    hash = Mix(Mix(hash, lsn), std::hash<std::string>()(text));
  }
  return hash;
}

CutPoints::CutPoints(OpeningWorld& world, int members, const At& at)
    : world_(world), members_(members) {
  for (int node = 1; node <= members_; ++node) {
    world_.pmem(node).SetHook([at](const Model::Event& event) {
      if (event.primitive == Model::Primitive::kFence) at(true);
    });
  }
  world_.on_event = [at] { at(false); };
}

CutPoints::~CutPoints() {
  for (int node = 1; node <= members_; ++node) world_.pmem(node).SetHook({});
  world_.on_event = nullptr;
}

OpeningWorld::Options ClusterCuts::WorldOptions() {
  OpeningWorld::Options options;
  options.members = options_.members;
  options.write_quorum = options_.write_quorum;
  options.seed = random_.Next() >> 16;
  options.ring_capacity = options_.ring_capacity;
  options.real_server = true;
  return options;
}

Images ClusterCuts::Draw(OpeningWorld& world) {
  Images images;
  for (int node = 1; node <= options_.members; ++node) {
    images.push_back(sim::DrawPowerCut(world.pmem(node), random_));
  }
  return images;
}

void ClusterCuts::CutAt(OpeningWorld& world, const ClusterOracle& oracle,
                        bool mixes, int drawn) {
  if (HasFailure()) return;
  ++counts_.points;
  if (mixes) {
    Images none;
    Images all;
    for (int node = 1; node <= options_.members; ++node) {
      none.push_back(world.pmem(node).CutKeepingNone());
      all.push_back(world.pmem(node).CutKeepingAll());
    }
    for (uint32_t mix = 0; mix < 1u << options_.members; ++mix) {
      Images images;
      for (int i = 0; i < options_.members; ++i) {
        images.push_back((mix >> i & 1) != 0 ? all[i] : none[i]);
      }
      Judge(images, oracle, options_.depth);
    }
  }
  for (int i = 0; i < drawn; ++i) Judge(Draw(world), oracle, options_.depth);
}

void ClusterCuts::Judge(const Images& images, const ClusterOracle& oracle,
                        int depth) {
  if (HasFailure()) return;
  uint64_t hash = oracle.Hash();
  for (const std::vector<std::byte>& image : images) {
    hash = Mix(hash, CrashEnumerator::HashOf(image));
  }
  if (!seen_.insert(hash).second) return;
  ++counts_.cuts;
  const quorum::QuorumSizes sizes =
      *quorum::MakeQuorumSizes(static_cast<uint32_t>(options_.members),
                               static_cast<uint32_t>(options_.write_quorum));
  const int needed = static_cast<int>(quorum::OpeningQuorumSize(sizes));
  std::vector<uint32_t> choices;
  for (uint32_t choice = 1; choice < 1u << options_.members; ++choice) {
    if (std::popcount(choice) == needed) choices.push_back(choice);
  }
  if (!options_.all_choices || depth < options_.depth) {
    choices = {choices[random_.Below(choices.size())]};
  }
  for (const uint32_t choice : choices) {
    JudgeChoice(images, oracle, choice, depth);
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << options_.seed << ", N " << options_.members
                    << ", W " << options_.write_quorum << ", cut "
                    << counts_.cuts << ", members that came back: mask "
                    << choice << ", depth left " << depth;
      return;
    }
  }
}

// A power cut in the middle of a repair that overwrites leaves a replica that
// knows nothing (P-H12): it is no answer, and one more has to come back for it.
uint32_t ClusterCuts::WithEnoughThatKnow(const Images& images,
                                         uint32_t choice) {
  const int needed = std::popcount(choice);
  uint32_t knowing = 0;
  for (int i = 0; i < options_.members; ++i) {
    std::vector<std::byte> image = images[i];
    const auto state = ReadRegionState(image, "cut");
    EXPECT_TRUE(state.ok()) << state.status();
    if (state.ok() && !state->superline.repairing) knowing |= 1u << i;
  }
  for (int i = 0; i < options_.members; ++i) {
    if (std::popcount(choice & knowing) >= needed) break;
    if ((choice >> i & 1) == 0) {
      ++counts_.widened;
      choice |= 1u << i;
    }
  }
  return choice;
}

// The members of `choice` come back, one of them or somebody else opens, and
// later all of them.
void ClusterCuts::JudgeChoice(const Images& images, ClusterOracle oracle,
                              uint32_t choice, int depth) {
  Images left;
  {
    OpeningWorld world(WorldOptions(), images);
    choice = WithEnoughThatKnow(images, choice);
    std::vector<int> hosts = {options_.members};  // has no replica
    for (int node = 1; node <= options_.members; ++node) {
      if ((choice >> (node - 1) & 1) == 0) continue;
      world.Restart(node);
      hosts.push_back(node - 1);
    }
    const int host = hosts[random_.Below(hosts.size())];
    std::unique_ptr<Primary> primary;
    {
      const CutPoints points(world, options_.members, [&](bool is_fence) {
        MaybeCutAgain(world, oracle, is_fence, depth);
      });
      primary = Open(world, host, oracle);
    }
    if (HasFailure()) return;
    if (random_.Below(2) == 0) {
      world.StartLog(*primary);
      const absl::Status appended = Append(*primary, oracle);
      EXPECT_TRUE(appended.ok()) << appended;  // CC5
      if (HasFailure()) return;
    }
    primary.reset();
    left = Draw(world);
  }
  OpeningWorld world(WorldOptions(), left);
  for (int node = 1; node <= options_.members; ++node) world.Restart(node);
  const auto host = static_cast<int>(
      random_.Below(static_cast<uint64_t>(options_.members) + 1));
  const auto primary = Open(world, host, oracle);
  if (HasFailure()) return;
  world.StartLog(*primary);
  const absl::Status appended = Append(*primary, oracle);
  EXPECT_TRUE(appended.ok()) << appended;  // CC5
}

// An opening has some hundred events; its fences are few, and what counts.
void ClusterCuts::MaybeCutAgain(OpeningWorld& world,
                                const ClusterOracle& oracle, bool is_fence,
                                int depth) {
  if (depth == 0 || HasFailure()) return;
  const auto odds = static_cast<uint64_t>(options_.cuts_per_opening);
  if (random_.Below(is_fence ? 25 : 200) >= odds) return;
  ++counts_.nested;
  Judge(Draw(world), oracle, depth - 1);
}

// A member may have promised more than those that were asked first knew of:
// then again, above it, as an application's process does.
std::unique_ptr<Primary> ClusterCuts::Open(OpeningWorld& world, int host,
                                           ClusterOracle& oracle) {
  ++counts_.openings;
  recovery::EpochOpeningOptions options = world.OpeningOptions(host);
  const uint64_t incarnation = random_.Next() | 1;
  std::unique_ptr<Primary> primary;
  for (int tries = 0; tries <= options_.members; ++tries) {
    primary.reset();
    primary = world.Begin(host, options, incarnation);
    for (int i = 0; i < 1'000'000 && world.Step({primary.get()}); ++i) {
    }
    EXPECT_TRUE(primary->opening->is_over());
    if (HasFailure() || !primary->opening->lost_race()) break;
    ++counts_.refused;
    options.above = primary->opening->refused_by()->epoch;
  }
  EXPECT_TRUE(primary->status().ok()) << primary->status();  // CC1
  if (!HasFailure()) JudgeAnswer(world, *primary, oracle);
  return primary;
}

void ClusterCuts::JudgeAnswer(OpeningWorld& world, Primary& primary,
                              ClusterOracle& oracle) {
  const recovery::EpochOpened& opened = *primary.opened;
  if (!opened.repairs.empty()) ++counts_.repaired;
  const uint64_t head = opened.head.lsn.value;
  const uint64_t end = opened.end.lsn.value;
  EXPECT_LE(head, oracle.cleaned + 1) << "a record is gone that is not cleaned";
  EXPECT_GE(head, oracle.emptied + 1) << "a cleaned log is back";  // P-L11
  EXPECT_GE(end, oracle.durable + 1) << "an acknowledged record is gone";
  Model& pmem = primary.host < options_.members ? world.pmem(primary.host + 1)
                                                : *primary.cache_pmem;
  const Ring ring = RingOf(pmem.region(), opened.start.superline);
  RecordCursor cursor(ring, opened.start.table, opened.head, opened.end.offset);
  for (uint64_t lsn = head; lsn < end; ++lsn) {
    ASSERT_EQ(cursor.Next(), RecordCursor::Step::kRecord) << "LSN " << lsn;
    ASSERT_EQ(cursor.record().lsn(), Lsn(lsn));
    const auto written = oracle.written.find(lsn);
    ASSERT_NE(written, oracle.written.end()) << "LSN " << lsn << " is invented";
    // Nobody is shown the payload of a cleaned one (P-A1).
    if (cursor.record().cleaned) {
      ASSERT_TRUE(oracle.IsCleaned(lsn)) << "LSN " << lsn;
      continue;
    }
    ASSERT_EQ(AsText(cursor.record().payload), written->second) << lsn;  // CC3
  }
  EXPECT_EQ(cursor.position(), opened.end);
  if (oracle.written.contains(end)) ++counts_.dropped;
  oracle.Show(end - 1);  // CC4
}

absl::Status ClusterCuts::Append(Primary& primary, ClusterOracle& oracle) {
  RingLog<Model>& log = *primary.log;
  const std::string text = NextText();
  const std::span<const std::byte> part = AsBytes(text);
  const Lsn next = log.next_lsn();
  oracle.written[next.value] = text;
  absl::StatusOr<Lsn> lsn = log.Append({&part, 1}, 1, Deadline());
  if (absl::IsResourceExhausted(lsn.status())) {
    // An application whose log is full does the same.
    ALPHEUS_RETURN_IF_ERROR(log.Force(next - 1, 1, Deadline()));
    oracle.durable = next.value - 1;
    oracle.CleanThrough(oracle.durable);
    ALPHEUS_RETURN_IF_ERROR(log.CleanupThrough(next - 1));
    lsn = log.Append({&part, 1}, 1, Deadline());
  }
  if (!lsn.ok()) return lsn.status();
  EXPECT_EQ(*lsn, next);
  oracle.durable = next.value;
  return absl::OkStatus();
}

std::string ClusterCuts::NextText() {
  return absl::StrCat(
      ++appended_, ":",
      std::string(random_.Below(options_.payload_bytes_max), 'x'));
}

void ClusterCuts::Print() const {
  std::printf(
      "[   counts ] seed %llu N %d W %d: %llu points, %llu cuts, %llu "
      "openings, %llu cuts inside openings, %llu repaired, %llu dropped, "
      "%llu refused, %llu came back for one that knows nothing\n",
      static_cast<unsigned long long>(options_.seed), options_.members,
      options_.write_quorum, static_cast<unsigned long long>(counts_.points),
      static_cast<unsigned long long>(counts_.cuts),
      static_cast<unsigned long long>(counts_.openings),
      static_cast<unsigned long long>(counts_.nested),
      static_cast<unsigned long long>(counts_.repaired),
      static_cast<unsigned long long>(counts_.dropped),
      static_cast<unsigned long long>(counts_.refused),
      static_cast<unsigned long long>(counts_.widened));
}

}  // namespace alpheus::testing
