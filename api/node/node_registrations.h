// SPDX-License-Identifier: Apache-2.0
// node_registrations: tells the membership service which replicas a node
// serves.
//
// Idea: each log has a membership of its own, with a session that ends with the
// process. Nothing rests on what the service then says: replicas are asked for
// on the fabric. Clients and operators read it.
//
// Invariants:
//   NR1. A replica is registered only while this process serves it. A primary
//        of this machine that has it registers nothing.
//   NR2. An expired session is renewed. If a membership could not be opened, a
//        later Register opens it: the process may have had too many files.
//   NR3. A membership is polled only when it has something to do, or its wishes
//        have changed: a poll costs system calls, in a node that waits for the
//        next record.
//   NR4. A log that is not served any more keeps no session, once the service
//        has nothing of it or the session is gone. Its end waits for nothing.
//   NR5. An operator hears once that a replica is registered, and again after
//        each problem that is over.
// Thread safety: one thread. Nothing blocks, but for the destructor, as that of
// a membership.
// References: quorum/membership/membership.h, docs/design/zookeeper.md.
#ifndef ALPHEUS_API_NODE_NODE_REGISTRATIONS_H_
#define ALPHEUS_API_NODE_NODE_REGISTRATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "quorum/membership/membership.h"

namespace alpheus {

class NodeRegistrations {
 public:
  // Opens this process's membership of a log.
  using Opener =
      std::function<absl::StatusOr<std::unique_ptr<quorum::Membership>>(
          const std::string& log_name)>;

  // `say` gets a sentence when a replica has been registered, when the service
  // begins to be of no use for a log, and when an operator should know of
  // something else: once for each change.
  NodeRegistrations(Opener open, std::function<void(const std::string&)> say);
  ~NodeRegistrations();

  // Registers the replica of a log that the node serves. Called now and then.
  void Register(const std::string& log_name,
                const quorum::Registration& registration);
  bool IsRegistered(const std::string& log_name) const;
  // Takes back the registrations of all logs for which `is_served` is false.
  void KeepOnly(absl::FunctionRef<bool(const std::string& log_name)> is_served);
  // `now`: of the clock of the memberships.
  void Poll(int64_t now);
  Deadline NextPoll() const { return Deadline::AtNanos(due_at_); }

 private:
  struct Log {
    // Null: it could not be opened.
    std::unique_ptr<quorum::Membership> membership;
    std::optional<quorum::Registration> registration;
    absl::Status said;     // the last problem
    std::string warned;    // the last warning
    bool is_said = false;  // that it is registered, since the last problem
    int64_t due_at = 0;    // of the next poll
  };

  static bool IsOver(const Log& log);
  void Advance(const std::string& log_name, Log& log, int64_t now);
  void Say(const std::string& log_name, Log& log, const absl::Status& problem);
  void Warn(const std::string& log_name, Log& log, const std::string& warning);
  void SayRegistered(const std::string& log_name, Log& log);

  const Opener open_;
  const std::function<void(const std::string&)> say_;
  std::map<std::string, Log> logs_;
  int64_t due_at_ = Deadline().at_nanos();  // the earliest of the logs
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_REGISTRATIONS_H_
