// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/log_members.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "log/core/ring/region_state.h"
#include "log/pmem/region.h"
#include "recovery/follow/remote_region.h"
#include "recovery/opening/log_creation.h"
#include "recovery/protocol/state_report.h"

namespace alpheus {

using recovery::PeerAddress;

namespace {

quorum::PrimaryId NewProcess(const LogMembersOptions& options,
                             RandomSource& random) {
  return {options.self, random.Next() | 1};
}

// Maximum wait for one node, so that a stopped one takes no time from the
// others.
constexpr std::chrono::seconds kReadMax(10);

absl::StatusOr<Superline> ReadSuperline(fabric::Fabric& fabric,
                                        RandomSource& random,
                                        const LogMembersOptions& options,
                                        const PeerAddress& peer) {
  const Deadline deadline = Deadline::AtNanos(
      std::min(options.deadline.at_nanos(), Deadline::In(kReadMax).at_nanos()));
  std::optional<Region> image;
  recovery::RemoteRegion remote(
      fabric,
      {.at = {.address = peer.address,
              .node = peer.node,
              .hello = {options.cluster_id, options.log_id,
                        NewProcess(options, random)},
              .deadline = {},
              .credentials = {options.key, &random}},
       .deadline = [&] { return deadline; },
       .without_ring = true},
      [&](uint64_t bytes) -> absl::StatusOr<std::span<std::byte>> {
        ALPHEUS_ASSIGN_OR_RETURN(
            image, Region::Anonymous(bytes, recovery::DescribePeer(peer)));
        return image->bytes();
      });
  const bool is_done = FabricPump(fabric).RunUntil(
      [&] { return remote.done(); }, deadline, remote);
  if (!is_done) return absl::UnavailableError("did not answer in time");
  ALPHEUS_RETURN_IF_ERROR(remote.status());
  ALPHEUS_ASSIGN_OR_RETURN(
      const RegionState state,
      ReadRegionState(image->bytes(), recovery::DescribePeer(peer)));
  return state.superline;
}

absl::Status MustRun(const LogMembersOptions& options,
                     const std::vector<PeerAddress>& peers,
                     const absl::Status& made) {
  if (!absl::IsUnavailable(made)) return made;
  const bool is_one = peers.size() == 1;
  return absl::UnavailableError(absl::StrCat(
      "log ", options.log_name, ": ", is_one ? "node " : "nodes ",
      absl::StrJoin(peers, ", ",
                    [](std::string* text, const PeerAddress& peer) {
                      absl::StrAppend(text, peer.node.value);
                    }),
      " must run before the change: start ", is_one ? "it" : "them",
      ", and run the same command again. The members were not changed; ",
      made.message()));
}

std::string DescribeFailed(const ReadSuperlinesResult& replicas,
                           const std::vector<PeerAddress>& peers) {
  std::string text;
  for (const PeerAddress& peer : peers) {
    const auto failed = replicas.failed.find(peer.node);
    if (failed == replicas.failed.end()) continue;
    // The message begins with the address, with which the peer's name ends.
    absl::StrAppend(&text, " ", recovery::DescribePeer(peer), ": ",
                    absl::StripPrefix(failed->second.message(),
                                      absl::StrCat(peer.address, ": ")),
                    ".");
  }
  return text;
}

}  // namespace

absl::StatusOr<ReadSuperlinesResult> ReadSuperlines(
    fabric::Fabric& fabric, RandomSource& random,
    const LogMembersOptions& options, const std::vector<PeerAddress>& peers) {
  ReadSuperlinesResult replicas;
  for (const PeerAddress& peer : peers) {
    absl::StatusOr<Superline> read =
        ReadSuperline(fabric, random, options, peer);
    if (read.ok()) {
      replicas.superlines.push_back(*std::move(read));
    } else {
      replicas.failed[peer.node] = read.status();
    }
  }
  if (!replicas.superlines.empty()) return replicas;
  return absl::UnavailableError(
      absl::StrCat("log ", options.log_name,
                   ": no node that can be reached knows its members.",
                   DescribeFailed(replicas, peers), " Nothing was changed"));
}

absl::StatusOr<Superline> NewestOf(const std::vector<Superline>& superlines) {
  const Superline* newest = nullptr;
  for (const Superline& superline : superlines) {
    if (recovery::IsBlank(superline)) continue;
    if (newest == nullptr || newest->log_epoch < superline.log_epoch) {
      newest = &superline;
    }
  }
  if (newest != nullptr) return *newest;
  return absl::FailedPreconditionError(
      absl::StrCat("log ", superlines.front().log_id.ToString(),
                   ": all replicas that can be reached are blank, so they do "
                   "not name the members of the log. Start the missing nodes; "
                   "if no node is missing, the log is new: open it once, for "
                   "example with `alpheus append --cluster FILE --log NAME`"));
}

absl::Status MakeBlankReplicas(fabric::Fabric& fabric, RandomSource& random,
                               const LogMembersOptions& options,
                               const Superline& newest,
                               const std::vector<PeerAddress>& peers) {
  if (peers.empty()) return absl::OkStatus();
  recovery::LogCreationOptions creation;
  creation.cluster_id = options.cluster_id;
  creation.log_id = options.log_id;
  creation.self = NewProcess(options, random);
  creation.peers = peers;
  creation.joined = newest.configuration;
  creation.region_bytes = newest.region_bytes;
  creation.log_name = options.log_name;
  creation.deadline = options.deadline;
  creation.key = options.key;
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<recovery::LogCreation> created,
      recovery::LogCreation::Start(fabric, Clock::Real(), random, creation));
  FabricPump(fabric).RunUntilDone(*created);
  return MustRun(options, peers, created->status());
}

}  // namespace alpheus
