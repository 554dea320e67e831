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
  say_(absl::StrCat("log ", log_name, ": ", problem.message()));
}

void NodeRegistrations::Warn(const std::string& log_name, Log& log,
                             const std::string& warning) {
  if (warning == std::exchange(log.warned, warning) || warning.empty()) return;
  say_(absl::StrCat("log ", log_name, ": warning: ", warning));
}

void NodeRegistrations::Register(const std::string& log_name,
                                 const quorum::Registration& registration) {
  const auto [found, is_new] = logs_.try_emplace(log_name);
  Log& log = found->second;
  if (is_new) {
    absl::StatusOr<std::unique_ptr<quorum::Membership>> opened =
        open_(log_name);
    if (opened.ok()) {
      log.membership = *std::move(opened);
    } else {
      Say(log_name, log, opened.status());
    }
  }
  if (log.registration == registration) return;
  log.registration = registration;
  if (log.membership != nullptr) log.membership->Register(registration);
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
    if (log.membership != nullptr) log.membership->Unregister();
  }
}

void NodeRegistrations::Poll() {
  for (auto& [log_name, log] : logs_) {
    if (log.membership == nullptr) continue;
    if (log.membership->session().state == quorum::SessionState::kExpired) {
      log.membership->Renew();
    }
    log.membership->Poll();
    Say(log_name, log, log.membership->problem());
    // Between two sessions there is none.
    if (log.membership->session().state == quorum::SessionState::kConnected) {
      Warn(log_name, log, log.membership->warning());
    }
  }
}

Deadline NodeRegistrations::NextPoll() const {
  Deadline next;
  for (const auto& [log_name, log] : logs_) {
    if (log.membership == nullptr) continue;
    next = Deadline::AtNanos(
        std::min(next.at_nanos(), log.membership->NextPoll().at_nanos()));
  }
  return next;
}

}  // namespace alpheus
