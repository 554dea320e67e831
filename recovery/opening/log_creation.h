// SPDX-License-Identifier: Apache-2.0
// log_creation: makes a new log on all its members, by one operator's command,
// or blank replicas of an existing log on nodes that are to join it.
//
// Idea of a new log: every member must be reached, and hold nothing of this log
// or a replica that nobody has opened. Only then are incarnations drawn and the
// replicas formatted, each with the configuration that names all of them: all
// are empty and none is blank (P-A4). A creation that was cut off leaves
// replicas on some members, and several such creations leave replicas with
// different incarnations. Until a primary opens them they hold nothing, so the
// same command makes the log again in their place.
// Idea of blank replicas: each gets the log's present configuration, which does
// not name it; the change of members that follows does (P-A5). A blank replica
// that exists already stays.
//
// Invariants:
//   LC1. A member is asked to format only after all N members said that they
//        hold no replica of the log, or one that was never opened. If all hold
//        replicas of one creation, that creation was complete, and no member is
//        asked. A replica is replaced only if it is still the one that was
//        looked at, and was not opened meanwhile.
//   LC2. A connection that breaks before formatting is made again, if there is
//        time left for the rest. One that breaks later is made again only to
//        look: the member has done what it was asked for if its replica has the
//        incarnation that was drawn, whoever has opened it since. It is not
//        asked a second time. A look that the node puts off, as it gives the
//        new replica to a process of its machine, is made again. Else a node
//        that can't be reached, is silent or refuses ends the creation: an
//        operator must hear of it.
//   LC3. No member is asked to format at or after the deadline.
// A failure leaves replicas on some members, which the error names. If they are
// an opening quorum, the log can be opened without the others; else they are of
// no use. They are replaced when the log is created again, unless it was
// opened.
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
#include "log/base/polled.h"
#include "log/base/random.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/cluster_key.h"
#include "recovery/protocol/opening_peer.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct LogCreationOptions {
  Uuid cluster_id;
  Uuid log_id;             // new
  quorum::PrimaryId self;  // the asking process
  quorum::QuorumSizes sizes;
  std::vector<PeerAddress> peers;  // all N members, or the joining ones
  uint64_t configuration_id = 1;   // id of a new log's configuration
  // Configuration of the existing log, if `peers` are to get blank replicas of
  // it.
  std::optional<Configuration> joined = std::nullopt;
  uint64_t region_bytes = 0;
  std::string log_name;
  int64_t step_timeout_ns = 10'000'000'000;
  // Nanoseconds from the loss of a connection to the next attempt; without a
  // deadline there is none.
  int64_t reconnect_ns = 100'000'000;
  Deadline deadline;
  quorum::ClusterKey key = {};  // not set: no proofs are asked for
};

class LogCreation {
 public:
  // Starts a creation. `fabric`, `clock` and `random` must outlive it. Errors:
  // InvalidArgument (not N members).
  static absl::StatusOr<std::unique_ptr<LogCreation>> Start(
      fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
      const LogCreationOptions& options);

  // The next four are as in EpochOpening.
  bool OnCompletion(const fabric::Completion& completion);
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  Polled Poll();
  Deadline NextPoll() const;

  // Requires, for all calls below: it is over. Errors:
  //   AlreadyExists  a member holds a replica of the log that was opened, or
  //                  all hold those of one creation; nothing was done. Or a
  //                  replica was opened meanwhile; the members are named
  //   Unavailable    a member could not be reached; nothing was done, or the
  //                  members that have a replica now are named
  //   others         the members'
  const absl::Status& status() const { return status_; }
  // Returns the configuration with the incarnations. Requires: the status is
  // OK.
  const Configuration& configuration() const { return configuration_; }

 private:
  enum class Phase { kServerHello, kCreation, kFormat, kOver };

  LogCreation(fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
              const LogCreationOptions& options);

  absl::Status Advance();
  bool MayConnectAgain(const OpeningPeer& peer) const;
  void Reconnect(int64_t now);
  absl::Status CheckServerHellos();
  absl::Status CheckCreations();
  bool IsComplete() const;
  void FormatAll();
  bool IsFormatted(const OpeningPeer& peer) const;
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
  Phase phase_ = Phase::kServerHello;
  absl::Status status_;
  Configuration configuration_;
  std::vector<std::unique_ptr<OpeningPeer>> peers_;
  // Errors of connections that were made again.
  std::map<NodeId, std::string> last_breaks_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_LOG_CREATION_H_
