// SPDX-License-Identifier: Apache-2.0
#include "api/node/node_registrations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus {

NodeRegistrations::NodeRegistrations(
    Opener open, std::function<void(const std::string&)> say)
    : open_(std::move(open)), say_(std::move(say)) {}

NodeRegistrations::~NodeRegistrations() = default;

void NodeRegistrations::Say(const std::string& log_name, Log& log,
                            const absl::Status& problem) {
  if (problem == std::exchange(log.said, problem) || problem.ok()) return;
  log.is_said = false;
  say_(absl::StrCat("log ", log_name, ": ", problem.message()));
}

void NodeRegistrations::SayRegistered(const std::string& log_name, Log& log) {
  if (std::exchange(log.is_said, true)) return;
  say_(absl::StrCat("log ", log_name,
                    ": its replica is registered in "
                    "ZooKeeper"));
}

void NodeRegistrations::Warn(const std::string& log_name, Log& log,
                             const std::string& warning) {
  if (warning == std::exchange(log.warned, warning) || warning.empty()) return;
  say_(absl::StrCat("log ", log_name, ": warning: ", warning));
}

void NodeRegistrations::Register(const std::string& log_name,
                                 const quorum::Registration& registration) {
  Log& log = logs_[log_name];
  const bool is_new = log.membership == nullptr;
  if (is_new) {
    absl::StatusOr<std::unique_ptr<quorum::Membership>> opened =
        open_(log_name);
    Say(log_name, log, opened.status());
    if (opened.ok()) log.membership = *std::move(opened);
  }
  const bool is_told = !is_new && log.registration == registration;
  log.registration = registration;
  if (log.membership == nullptr || is_told) return;
  log.membership->Register(registration);
  log.due_at = due_at_ = 0;
}

bool NodeRegistrations::IsRegistered(const std::string& log_name) const {
  const auto found = logs_.find(log_name);
  return found != logs_.end() && found->second.registration.has_value();
}

void NodeRegistrations::KeepOnly(
    absl::FunctionRef<bool(const std::string& log_name)> is_served) {
  for (auto& [log_name, log] : logs_) {
    if (!log.registration.has_value() || is_served(log_name)) continue;
    log.registration.reset();
    log.due_at = due_at_ = 0;
    if (log.membership != nullptr) log.membership->Unregister();
  }
}

// NR4. A session that was never there, or is gone, has left nothing.
bool NodeRegistrations::IsOver(const Log& log) {
  if (log.registration.has_value()) return false;
  if (log.membership == nullptr) return true;
  const quorum::Session session = log.membership->session();
  return session.id == 0 || session.state == quorum::SessionState::kExpired ||
         log.membership->is_settled();
}

// NR3.
void NodeRegistrations::Poll(int64_t now) {
  if (now < due_at_) return;
  due_at_ = Deadline().at_nanos();
  for (auto& [log_name, log] : logs_) {
    if (log.membership == nullptr) continue;
    if (now >= log.due_at) Advance(log_name, log, now);
    due_at_ = std::min(due_at_, log.due_at);
  }
  std::erase_if(logs_, [](const auto& entry) { return IsOver(entry.second); });
}

void NodeRegistrations::Advance(const std::string& log_name, Log& log,
                                int64_t now) {
  quorum::Membership& membership = *log.membership;
  if (membership.session().state == quorum::SessionState::kExpired) {
    membership.Renew();
  }
  membership.Poll();
  Say(log_name, log, membership.problem());
  const quorum::SessionState state = membership.session().state;
  // Between two sessions there is none.
  if (state == quorum::SessionState::kConnected) {
    Warn(log_name, log, membership.warning());
    if (log.registration.has_value() && membership.is_settled() &&
        log.said.ok()) {
      SayRegistered(log_name, log);
    }
  }
  // One that has expired does nothing before it is renewed.
  log.due_at = state == quorum::SessionState::kExpired
                   ? now
                   : membership.NextPoll().at_nanos();
}

}  // namespace alpheus
