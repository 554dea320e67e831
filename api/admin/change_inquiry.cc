// SPDX-License-Identifier: Apache-2.0
#include "api/admin/change_inquiry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "recovery/protocol/members_change.h"
#include "recovery/protocol/opening_peer.h"

namespace alpheus {

using recovery::ChangeState;
using recovery::ChangeWord;
using recovery::MembersChange;

namespace {

bool Stays(const MembersChange& change, NodeId node) {
  const auto names = [node](const std::vector<NodeId>& nodes) {
    return std::ranges::find(nodes, node) != nodes.end();
  };
  return names(change.from_nodes) && names(change.to_nodes) &&
         !names(change.replaced);
}

}  // namespace

ChangeInquiry::ChangeInquiry(ChangeInquiryOptions options,
                             const recovery::AskChange& asked)
    : options_(std::move(options)), asked_(asked) {}

std::optional<absl::StatusOr<AskedPrimary>> ChangeInquiry::Take(
    std::vector<Answer> answers, int64_t now) {
  ALPHEUS_CHECK(answers.size() == asked_.peers.size(),
                "each node has an answer, or the reason why it has none");
  answers_ = std::move(answers);
  const bool is_late = options_.deadline.HasPassed(now);
  if (const ChangeState* const said = Find(ChangeWord::kInstalled)) {
    if (!made_) gathers_until_ = now + options_.gather_ns;
    made_ = *said;
    made_at_ = now;
    const bool is_gathered = made_->missing.empty() || now >= gathers_until_;
    if (is_late || (is_gathered && !Misses(*made_))) {
      return AskedPrimary{Report()};
    }
    return std::nullopt;
  }
  if (made_.has_value()) {
    // CIQ3. Its node is slow, or it is gone.
    if (is_late || now - made_at_ >= kGoneNanos) return AskedPrimary{Report()};
    return std::nullopt;
  }
  if (Find(ChangeWord::kRunning) != nullptr) {
    begun_at_ = now;
  } else if (const ChangeState* const said = FindEnd()) {
    return NotMade(*said);
  } else if (IsNobodyLeft(now)) {
    return AskedPrimary{std::nullopt, Leaving()};
  }
  if (is_late) return Unknown();
  return std::nullopt;
}

const ChangeState* ChangeInquiry::Find(ChangeWord word) const {
  for (const Answer& answer : answers_) {
    if (answer.said && answer.said->word == word) return &*answer.said;
  }
  return nullptr;
}

// Returns the word of a primary that did not make the change, unless there is a
// later primary. A node without a primary names no epoch.
const ChangeState* ChangeInquiry::FindEnd() const {
  Epoch latest;
  for (const Answer& answer : answers_) {
    if (answer.said) latest = std::max(latest, answer.said->epoch);
  }
  for (const ChangeWord word : {ChangeWord::kCutOff, ChangeWord::kRefused}) {
    for (const Answer& answer : answers_) {
      const bool is_latest = answer.said && answer.said->epoch == latest;
      if (is_latest && answer.said->word == word) return &*answer.said;
    }
  }
  return nullptr;
}

// CIQ1. A node that does not answer yet, or whose replica is some process's
// that says nothing, may be the primary's. One that is busy with another change
// says so, and is waited for.
bool ChangeInquiry::IsNobodyLeft(int64_t now) const {
  bool is_open = false;
  bool is_busy = false;
  for (const Answer& answer : answers_) {
    const bool waits = answer.said && answer.said->word == ChangeWord::kWaiting;
    is_open |= waits || (!answer.said && answer.failure.ok());
    is_busy |= waits && !answer.said->why.ok();
  }
  if (begun_at_) {
    return now - *begun_at_ >= (is_open ? kSilentNanos : kGoneNanos);
  }
  if (!is_open) return true;
  return !is_busy && options_.begun_by.HasPassed(now);
}

std::optional<NodeId> ChangeInquiry::Leaving() const {
  std::optional<NodeId> leaving;
  Epoch latest;
  for (size_t i = 0; i < answers_.size(); ++i) {
    const NodeId node = asked_.peers[i].node;
    const std::optional<ChangeState>& said = answers_[i].said;
    if (!said || said->word != ChangeWord::kNobody || said->epoch <= latest) {
      continue;
    }
    latest = said->epoch;
    leaving = std::nullopt;
    if (!Stays(asked_.change, node)) leaving = node;
  }
  return leaving;
}

// Returns whether a newcomer is not in sync: it gets a copy of the log while
// that runs.
bool ChangeInquiry::Misses(const ChangeState& made) const {
  return std::ranges::any_of(made.missing, [this](NodeId node) {
    return !Stays(asked_.change, node);
  });
}

RecoveryReport ChangeInquiry::Report() const {
  RecoveryReport report;
  report.log_id = options_.log_id;
  report.epoch = made_->epoch;
  report.head_lsn = made_->head_lsn;
  report.read_from_lsn = report.head_lsn;
  report.end_lsn = made_->next_lsn - 1;
  report.was_running = true;
  for (const NodeId node : made_->missing) {
    report.absent_members.push_back(absl::StrCat(
        "node ", node.value, ": not in sync yet; the primary goes on trying"));
  }
  return report;
}

absl::Status ChangeInquiry::NotMade(const ChangeState& said) const {
  const absl::Status why =
      said.why.ok() ? absl::UnavailableError("it does not say why") : said.why;
  const char* const end =
      said.word == ChangeWord::kRefused
          ? "Nothing was changed, and the log goes on"
          : "Some members may have the new list; run the same command again, "
            "which completes the change";
  return {why.code(),
          absl::StrCat("log ", options_.log_name, ": its primary, in epoch ",
                       said.epoch.value, ", did not change the members: ",
                       why.message(), ". ", end)};
}

// CIQ2.
absl::Status ChangeInquiry::Unknown() const {
  return absl::UnavailableError(absl::StrCat(
      "log ", options_.log_name, ": the outcome is unknown: its primary ",
      begun_at_ ? "began to change the members" : "may have heard of it",
      ", and did not say in time what became of it; ", Answers(),
      ". `alpheus status` shows which list the members have; the same command "
      "completes the change"));
}

std::string ChangeInquiry::Answers() const {
  std::string text;
  for (size_t i = 0; i < answers_.size(); ++i) {
    const auto& [said, failure] = answers_[i];
    absl::StrAppend(&text, i == 0 ? "" : "; ",
                    recovery::DescribePeer(asked_.peers[i]), ": ");
    if (!failure.ok()) {
      absl::StrAppend(&text, failure.message());
    } else if (!said) {
      absl::StrAppend(&text, "it does not answer");
    } else if (!said->why.ok()) {
      absl::StrAppend(&text, said->why.message());
    } else if (said->word == ChangeWord::kRunning) {
      absl::StrAppend(&text, "its primary is changing the members");
    } else {
      absl::StrAppend(&text,
                      "the process that has its replica says nothing yet");
    }
  }
  return text;
}

}  // namespace alpheus
