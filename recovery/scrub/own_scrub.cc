// SPDX-License-Identifier: Apache-2.0
#include "recovery/scrub/own_scrub.h"

#include <algorithm>
#include <utility>

namespace alpheus::recovery {
namespace {

// Bytes of a slice, for which appending threads wait some ten microseconds, and
// nanoseconds between two slices, which are theirs.
constexpr uint64_t kOwnSliceBytesMax = uint64_t{32} << 10;
constexpr int64_t kBetweenSlicesNanos = 100'000;

ScrubbingOptions InShortSlices(ScrubbingOptions options) {
  options.slice_bytes = std::min(options.slice_bytes, kOwnSliceBytesMax);
  return options;
}

}  // namespace

OwnScrub::OwnScrub(fabric::Fabric& fabric, const Clock& clock,
                   Scrubbing::Node node, const ScrubbingOptions& options,
                   Log log, PrimaryReplica& replica)
    : log_(std::move(log)),
      replica_(replica),
      clock_(clock),
      scrubbing_(fabric, clock, std::move(node), InShortSlices(options)) {
  scrubbing_.Watch(*this);
}

bool OwnScrub::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (!scrubbing_.OnConnectionEvent(event)) return false;
  next_poll_ns_ = 0;
  return true;
}

bool OwnScrub::OnCompletion(const fabric::Completion& completion) {
  if (!scrubbing_.OnCompletion(completion)) return false;
  next_poll_ns_ = 0;
  return true;
}

void OwnScrub::Start() {
  scrubbing_.Ask(log_.log_id);
  next_poll_ns_ = 0;
}

Polled OwnScrub::Poll(const LogPosition& head, Lsn persisted) {
  const int64_t now = clock_.NowNanos();
  if (now < next_poll_ns_) return Polled::kIdle;
  const uint64_t passes = State().passes;
  head_ = head;
  persisted_ = persisted;
  scrubbing_.Poll([](Uuid /*log_id*/) { return false; });
  next_poll_ns_ =
      std::max(scrubbing_.NextPoll().at_nanos(), now + kBetweenSlicesNanos);
  return State().passes != passes ? Polled::kMoved : Polled::kIdle;
}

Followed OwnScrub::followed() const {
  Followed followed;
  followed.log_epoch = log_.epoch;
  followed.replica_count = log_.configuration.replica_count;
  followed.write_quorum = log_.configuration.write_quorum;
  followed.configuration_id = log_.configuration.id;
  followed.head = head_;
  followed.persisted_lsn = persisted_;
  followed.table = log_.table;
  return followed;
}

}  // namespace alpheus::recovery
