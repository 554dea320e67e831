// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/cluster_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "log/base/bytes.h"

namespace alpheus::testing {

ClusterRun::ClusterRun(ClusterCuts& cuts, const ClusterCutOptions& options,
                       CutPoints::At at)
    : cuts_(cuts),
      options_(options),
      at_(std::move(at)),
      world_(std::make_unique<OpeningWorld>(cuts.WorldOptions())) {
  Watch();
}

ClusterRun::~ClusterRun() {
  points_.reset();
  if (is_open()) Kill();
}

void ClusterRun::Watch() {
  points_.reset();
  points_ = std::make_unique<CutPoints>(*world_, options_.members, at_);
}

int ClusterRun::members_up() {
  int up = 0;
  for (int node = 1; node <= options_.members; ++node) up += world_->IsUp(node);
  return up;
}

void ClusterRun::Open(int host) {
  if (host < options_.members && !world_->IsUp(host + 1)) {
    world_->Restart(host + 1);
  }
  primary_ = cuts_.Open(*world_, host, oracle_);
  if (!::testing::Test::HasFailure()) world_->StartLog(*primary_);
}

void ClusterRun::Kill() {
  if (!is_open()) return;
  if (log_is_open()) CompleteAll();
  const int host = primary_->host;
  primary_.reset();
  for (const auto& [a, b] : cut_links_) world_->network().Heal(a, b);
  cut_links_.clear();
  if (host < options_.members) {
    world_->Crash(host + 1, /*power_cut=*/false);
  } else {
    world_->network().Crash(host);
    world_->network().Restart(host);
  }
}

bool ClusterRun::IsDone(const absl::Status& status) {
  if (status.ok()) return true;
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  // P-H20: nothing succeeds any more.
  const std::span<const std::byte> nothing;
  EXPECT_TRUE(
      absl::IsAborted(log().Append({&nothing, 1}, 1, Deadline()).status()));
  ++lost_quorums_;
  Kill();
  return false;
}

void ClusterRun::CrashMember(int node) {
  world_->Crash(node, /*power_cut=*/false);
  world_->pmem(node).Reset(cuts_.Draw(*world_)[node - 1]);
}

void ClusterRun::RestartAll() {
  for (int node = 1; node <= options_.members; ++node) {
    if (!world_->IsUp(node)) world_->Restart(node);
  }
}

void ClusterRun::Isolate(int node) {
  for (int host = 0; host < options_.members + 2; ++host) {
    if (host == node - 1) continue;
    world_->network().Cut(node - 1, host);
    cut_links_.emplace_back(node - 1, host);
  }
}

// A caller that waits must not hold a reservation; here all are one thread.
void ClusterRun::Append() {
  if (!log_is_open()) return;
  CompleteAll();
  IsDone(cuts_.Append(*primary_, oracle_));
}

void ClusterRun::Reserve() {
  if (!log_is_open()) return;
  const std::string text = cuts_.NextText();
  auto record = log().Reserve(text.size(), Deadline());
  if (absl::IsResourceExhausted(record.status()) ||
      absl::IsFailedPrecondition(record.status())) {
    return;
  }
  if (!IsDone(record.status())) return;
  ASSERT_TRUE(log().Copy(*record, 0, AsBytes(text)).ok());
  clients_.push_back({*record, text});
}

void ClusterRun::CompleteOne() {
  if (clients_.empty()) return;
  const size_t i = cuts_.random().Below(clients_.size());
  Client client = std::move(clients_[i]);
  clients_.erase(clients_.begin() + static_cast<ptrdiff_t>(i));
  oracle_.written[client.record.lsn.value] = client.text;
  // A log that lost its quorum refuses, and the client lets go.
  if (log().Complete(client.record).ok()) return;
  oracle_.written[client.record.lsn.value] = "";
  oracle_.Clean(client.record.lsn.value);
  log().Abort(client.record);
}

void ClusterRun::AbortOne() {
  if (clients_.empty()) return;
  const Client client = std::move(clients_.back());
  clients_.pop_back();
  oracle_.written[client.record.lsn.value] = "";
  oracle_.Clean(client.record.lsn.value);
  log().Abort(client.record);
}

void ClusterRun::CompleteAll() {
  while (!clients_.empty()) CompleteOne();
}

void ClusterRun::Force() {
  if (!log_is_open()) return;
  const uint64_t last = log().first_open_lsn().value - 1;
  if (last <= oracle_.durable) return;
  const absl::Status forced = log().Force(Lsn(last), 1, Deadline());
  if (IsDone(forced)) oracle_.durable = last;
}

void ClusterRun::Cleanup(uint64_t lsn) {
  if (!log_is_open()) return;
  if (lsn <= oracle_.cleaned || lsn > oracle_.durable) return;
  const bool again = oracle_.cleaned_beyond.contains(lsn);
  oracle_.Clean(lsn);
  const absl::Status cleaned = log().Cleanup(Lsn(lsn));
  // A power cut may have taken the mark; the log then knows nothing of it.
  if (again && absl::IsNotFound(cleaned)) return;
  IsDone(cleaned);
}

void ClusterRun::CleanupThrough(uint64_t lsn) {
  if (!log_is_open()) return;
  lsn = std::min(lsn, oracle_.durable);
  if (lsn == 0) return;
  oracle_.CleanThrough(lsn);
  IsDone(log().CleanupThrough(Lsn(lsn)));
}

void ClusterRun::CleanupAll() {
  if (!log_is_open()) return;
  CompleteAll();
  const uint64_t last = log().next_lsn().value - 1;
  oracle_.CleanThrough(last);
  if (!IsDone(log().CleanupAll())) return;
  oracle_.durable = last;
  oracle_.emptied = last;
}

void ClusterRun::PowerCut(const Images& images, const ClusterOracle& oracle) {
  CompleteAll();
  points_.reset();
  primary_.reset();
  cut_links_.clear();
  world_ = std::make_unique<OpeningWorld>(cuts_.WorldOptions(), images);
  oracle_ = oracle;
  Watch();
}

}  // namespace alpheus::testing
