// SPDX-License-Identifier: Apache-2.0
#include "recovery/election/membership_entries.h"

#include <utility>

#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

MembershipEntries::MembershipEntries(quorum::Membership& membership,
                                     Options options)
    : membership_(membership), options_(std::move(options)) {
  merits_.priority = options_.priority;
  membership_.Describe(merits_);
}

std::optional<Epoch> MembershipEntries::Poll(const Election& election) {
  if (membership_.session().state == quorum::SessionState::kExpired) {
    membership_.Renew();
  }
  FollowStanding(election);
  Describe(election);
  membership_.Poll();
  return PrimaryThatLeft();
}

void MembershipEntries::FollowStanding(const Election& election) {
  const bool stands = election.standing() == Standing::kReady;
  if (std::exchange(stands_, stands) == stands) return;
  if (stands) {
    membership_.Stand();
  } else {
    membership_.Withdraw();
  }
}

// While this process has its replica the last word stays. ENT5.
void MembershipEntries::Describe(const Election& election) {
  const Heard* const own = election.HeardAt(options_.self.node);
  if (own == nullptr || own->log_epoch == Epoch()) return;
  const bool follows =
      own->word == PrimaryWord::kHeard && own->log_epoch == merits_.log_epoch;
  if (follows) return;
  const quorum::Merits merits = {own->persisted_lsn, options_.priority,
                                 own->log_epoch};
  if (merits == merits_) return;
  merits_ = merits;
  membership_.Describe(merits_);
}

// ENT6. States are compared, since an event may be of an earlier session.
std::optional<Epoch> MembershipEntries::PrimaryThatLeft() {
  const bool is_connected =
      membership_.session().state == quorum::SessionState::kConnected;
  if (!is_connected || !membership_.is_settled()) return std::nullopt;
  const std::optional<quorum::LivePrimary> now = membership_.live_primary();
  const std::optional<quorum::LivePrimary> before = std::exchange(known_, now);
  const bool has_gone = before.has_value() && !now.has_value();
  if (!has_gone || before->primary == options_.self) return std::nullopt;
  // A primary whose znode is deleted by hand makes it again.
  if (std::exchange(left_, before->epoch) == before->epoch) return std::nullopt;
  return before->epoch;
}

// ENT4.
void MembershipEntries::Opened(Epoch epoch,
                               const quorum::MembersCopy& members) {
  membership_.Announce({epoch, options_.self, options_.address});
  membership_.Publish(members);
}

void MembershipEntries::Ended() { membership_.Retract(); }

}  // namespace alpheus::recovery
