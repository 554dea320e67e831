// SPDX-License-Identifier: Apache-2.0
// log_creation: makes a new log on all its members, by one operator's command;
// or blank replicas of a log that is there, on nodes that are to join it.
//
// Idea: every member must be there and have nothing of this log, or nothing
// that anybody has opened; only then are incarnations drawn and the replicas
// formatted, each with the configuration that names all of them, so that all
// are empty and none is blank (P-A4). A creation that was cut off left replicas
// on some members, or of several creations. As long as nobody has opened them
// they hold nothing; so the same command makes the log anew, in their place. A
// blank replica gets the log's present configuration, which does not name it;
// the change of members that follows does (P-A5). Where one is already it
// stays.
//
// Invariants:
//   LC1. Nothing is formatted unless all N members said that they hold no
//        replica of the log, or one that was never opened; and of these not if
//        all are of one creation, which then was not cut off. A replica is
//        replaced only where it is still the one that was looked at, and was
//        not opened meanwhile.
//   LC2. A connection that breaks before that is made anew, while there is time
//        left for the rest; none that breaks afterwards is, as its outcome is
//        unknown. A node that can't be reached, is silent or refuses ends the
//        creation: an operator is to hear of it.
//   LC3. Nobody is asked to format at or after the deadline.
// What a failure leaves: replicas on some members, which the error names. Where
// they are an opening quorum, the log can be opened without the others; else
// they are of no use. They are replaced when the log is created again, if
// nobody has opened it.
// Thread safety: one thread.
// References: protocol P-A4, P-H16, P-H17.
#ifndef ALPHEUS_RECOVERY_OPENING_LOG_CREATION_H_
#define ALPHEUS_RECOVERY_OPENING_LOG_CREATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/cluster_key.h"
#include "recovery/protocol/opening_peer.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

struct LogCreationOptions {
  Uuid cluster_id;
  Uuid log_id;     // new
  PrimaryId self;  // who asks
  QuorumSizes sizes;
  std::vector<PeerAddress> peers;  // all N members, or those who join
  uint64_t configuration_id = 1;   // of a new log
  // Of the log that is there, if `peers` are to get blank replicas of it.
  std::optional<Configuration> joined = std::nullopt;
  uint64_t region_bytes = 0;
  std::string log_name;
  int64_t step_timeout_ns = 10'000'000'000;
  // From the loss of a connection to the next attempt; none without a deadline.
  int64_t reconnect_ns = 100'000'000;
  Deadline deadline;
  ClusterKey key = {};  // not set: nobody proves anything
};

class LogCreation {
 public:
  // `fabric`, `clock` and `random` must outlive it. Errors: InvalidArgument
  // (not N members).
  static absl::StatusOr<std::unique_ptr<LogCreation>> Start(
      Fabric& fabric, const Clock& clock, RandomSource& random,
      const LogCreationOptions& options);

  // As EpochOpening.
  bool Take(const Completion& completion);
  bool Take(const ConnectionEvent& event);
  bool Poll();
  Deadline NextPoll() const;

  // Requires, of the rest: it is over.
  //   AlreadyExists  a member holds a replica of the log that was opened, or
  //   all
  //                  hold those of one creation; nothing was done. Or a replica
  //                  was opened meanwhile, and the members are named
  //   Unavailable    a member could not be reached; nothing was done, or the
  //                  members are named where a replica is now
  //   others         the members'
  const absl::Status& status() const { return status_; }
  // With the incarnations. Requires: the status is OK.
  const Configuration& configuration() const { return configuration_; }

 private:
  enum class Phase { kWelcome, kCreation, kFormat, kOver };

  LogCreation(Fabric& fabric, const Clock& clock, RandomSource& random,
              const LogCreationOptions& options);

  absl::Status GoOn();
  bool MayConnectAgain(const OpeningPeer& peer) const;
  void Reconnect(int64_t now);
  absl::Status CheckWelcomes();
  absl::Status CheckCreations();
  bool IsComplete() const;
  void FormatAll();
  static bool HasReplica(const OpeningPeer& peer);
  void DrawIncarnations();
  void AskForBlanks();
  absl::Status CheckFormatted();
  absl::Status NothingDone(const absl::Status& why) const;
  absl::Status NothingDone(const OpeningPeer& failed) const;
  absl::Status PartlyDone() const;
  void End(const absl::Status& status);

  const Clock& clock_;
  RandomSource& random_;
  const LogCreationOptions options_;
  Phase phase_ = Phase::kWelcome;
  absl::Status status_;
  Configuration configuration_;
  std::vector<std::unique_ptr<OpeningPeer>> peers_;
  std::map<NodeId, std::string> last_breaks_;  // of connections made anew
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_OPENING_LOG_CREATION_H_
