// SPDX-License-Identifier: Apache-2.0
#include "tests/recovery/deletion/deletion_world.h"

#include <gtest/gtest.h>

#include <utility>

#include "log/base/check.h"

namespace alpheus::testing {
namespace {

constexpr int64_t kDeletionNanos = 60'000'000;

OpeningWorld::Options With(OpeningWorld::Options options) {
  options.real_server = true;
  options.onlookers = 1;
  return options;
}

}  // namespace

DeletionWorld::DeletionWorld(OpeningWorld::Options options)
    : world_(With(options)),
      host_(options.members + options.spares + 2),
      members_(options.members) {}

void DeletionWorld::OpenAndWrite(const std::string& payload,
                                 const std::vector<int>& nodes) {
  const auto primary = Open();
  ALPHEUS_CHECK(primary->status().ok(), "a whole log opens");
  std::vector<int> all = nodes;
  all.push_back(0);
  world_.Append(*primary, payload, all);
}

std::unique_ptr<OpeningWorld::Primary> DeletionWorld::Open() {
  recovery::EpochOpeningOptions options =
      world_.OpeningOptions(world_.outsider());
  options.deadline =
      Deadline::AtNanos(world_.network().clock().NowNanos() + kDeletionNanos);
  return world_.Open(world_.outsider(), options);
}

recovery::LogDeletionOptions DeletionWorld::Options() {
  recovery::LogDeletionOptions options;
  options.cluster_id = kOpeningCluster;
  options.log_id = kOpeningLog;
  options.sizes = world_.sizes();
  for (int node = 1; node <= members_; ++node) {
    options.peers.push_back(world_.AddressOf(node));
  }
  options.step_timeout_ns = 5'000'000;
  options.reconnect_ns = 500'000;
  options.gather_ns = 2'000'000;
  options.deadline =
      Deadline::AtNanos(world_.network().clock().NowNanos() + kDeletionNanos);
  return options;
}

void DeletionWorld::Begin(const recovery::LogDeletionOptions& asked) {
  deletion_.reset();
  recovery::LogDeletionOptions options = asked;
  options.self = {node(), ++processes_ << 48 | 1};
  ballots_ = std::make_unique<quorum::StaticMembership>(
      *quorum::StaticMembership::Make(options.self));
  deletion_ = *recovery::LogDeletion::Start(world_.network().fabric(host_),
                                            world_.network().clock(), random_,
                                            *ballots_, options);
}

void DeletionWorld::PollOperator() {
  if (before_turn) before_turn();
  fabric::Completion completions[64];
  std::vector<fabric::ConnectionEvent> events;
  const size_t count =
      world_.network().fabric(host_).Poll(completions, &events);
  for (const fabric::ConnectionEvent& event : events) {
    deletion_->OnConnectionEvent(event);
  }
  for (size_t i = 0; i < count; ++i) deletion_->OnCompletion(completions[i]);
}

bool DeletionWorld::Step() {
  world_.Step({});
  PollOperator();
  if (deletion_->Poll() == Polled::kDone) return false;
  // It would spin.
  EXPECT_GT(deletion_->NextPoll().at_nanos(),
            world_.network().clock().NowNanos());
  return true;
}

const recovery::LogDeletion& DeletionWorld::Delete() {
  Begin();
  while (Step()) {
  }
  return *deletion_;
}

int DeletionWorld::CountMarked(int nodes) {
  int count = 0;
  for (int node = 1; node <= nodes; ++node) {
    count += DeletionOf(node) == Deletion::kNone ? 0 : 1;
  }
  return count;
}

void DeletionWorld::Pass(int64_t ns) {
  const int64_t end = world_.network().clock().NowNanos() + ns;
  while (world_.network().clock().NowNanos() < end) world_.Step({});
}

}  // namespace alpheus::testing
