// SPDX-License-Identifier: Apache-2.0
// replica_server: a node's side of opening epochs and of the sessions after
// them, for any number of logs. One primary process has one connection per log.
//
// Idea: a connection goes through phases, and each message belongs to a phase.
// A message out of turn costs its sender the connection, and costs
// no other anything.
//
// Where the cluster has a key, a connection proves it first (handshake.h). Any
// other request before the proof ends the connection. Then:
//
//   phase      asked for            replied                then
//   kControl   Format               Formatted              kControl
//   (any but   View                 Viewed                 as before
//   kSession)  Follow               Followed               as before
//              Release              Released               as before
//              Scrub                Scrubbed               as before
//              Fetch                Fetched                as before
//                                   later, if it is held   kFetching
//              Hold                 Wanted, Scrub or       kControl
//                                   Fetch, when it is
//              AskPromise           Refused                as before
//                                   later                  kAnswering
//   kAnswering nothing              Promised               kPromised
//   kPromised  Prepare              Prepared               kPrepared
//   kPrepared  Install              later                  kInstalling
//   kInstalling  nothing            Installed              kSession
//   kHolding   nothing              Wanted, Scrub, Fetch   kControl
//   (told      Fetched              as to Hold             kHolding)
//   kWaiting   nothing              as to AskPromise       as there
//   kFetching  nothing              Fetched                kControl
//   kSession   batches              acks                   kSession
//   any        anything else        Failed, if it can be   kEnding, closed
//
// The connection that gets the promise of a log is the log's only *holder*: at
// most one connection of each log is in a phase from kAnswering to kSession.
//
// A primary on this machine may have the log's region, with this node's replica
// (the *local primary*, P-A7). It says so by Hold. An opener that asks for the
// promise meanwhile waits in kWaiting. The local primary hears of it by Wanted
// and gives up the region; AddLog follows. Requests to scrub reach it the same
// way, and its next Hold says how far the scrub is. Requests for bytes of its
// ring reach it one after the other, and it shows the bytes.
//
// Scans and installations read the whole ring, which takes seconds for some
// GiB. They run in slices, one in each Poll and one job after the other. So
// sessions of other logs wait for one slice at most.
//
// Invariants:
//   RS1. Before the replica reads its ring to answer a promise: the promise is
//        persisted; all other connections of the log that ever had a promise
//        are closed; every key that was given out is void (P-H6, P-R2,
//        P-INV-6). Each of the last two is a fence by itself (FB5 of fabric.h).
//        Both are needed, because a key opens its region on every connection.
//   RS2. After that the ring changes only through the holder's connection: keys
//        that allow writes exist from Prepared to the holder's end.
//   RS3. Exactly one control receive is posted while requests may come, and
//        none once the session posts its own: receives are used up in order.
//   RS4. Memory is bounded. Each log has one holder. Connections without a
//        promise are limited in number and in the time that they may be silent.
//        Connections without a proof have places of their own, so that
//        unauthenticated clients take none of those with the key; the oldest
//        makes room. Connections with a proof have places by their last
//        request: new, looking at a region, following, or asking. None takes a
//        place of another kind, and the one that was silent longest makes room.
//        So no number of readers keeps out an opening or a look. Followers that
//        keep asking are refused when there are too many.
//   RS5. A primary is told of a promise only if the asker has proved the key
//        and its promise is above the primary's. Nothing is promised for a log
//        that this server does not have. Only a request for a promise makes a
//        primary step down.
//   RS6. Bytes that a local primary shows go to the asker alone, and are no
//        more than it asked for.
//   RS7. Work in which memory runs out ends all connections of its log. The log
//        is served no more until it is opened again: half-done work is never
//        continued. Other logs are not affected.
//   RS8. A session that another primary ends is told so before its connection
//        is closed. Refused has the promise that stands; Released says that a
//        process of this machine takes the replica. Nobody waits until it has
//        heard: an adapter that drops its sends when it closes (FB5) drops this
//        one, too.
// Thread safety: one thread.
// References: protocol P-A2, P-A4.2, P-A4.5, P-A7, P-H6, P-H16, P-H17, P-H21,
// P-R1, P-R2; messages.h; docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_SERVER_REPLICA_SERVER_H_
#define ALPHEUS_RECOVERY_SERVER_REPLICA_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/refusals.h"
#include "recovery/scrub/scrubbing.h"
#include "recovery/server/served_log.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"
#include "replication/wire/message_slots.h"

namespace alpheus {

struct ReplicaServerOptions {
  Uuid cluster_id;
  NodeId node;
  // Platform of all replicas of this node; Welcome announces it.
  Platform platform = {};
  // Limits for connections without a promise (RS4): number of each kind, and
  // nanoseconds of silence. More than 0.
  size_t waiting_connections_max = 32;
  size_t followers_max = 64;
  int64_t silence_ns_max = 30'000'000'000;
  // Limits for connections that have not proved the key: number, and
  // nanoseconds.
  size_t unproved_connections_max = 32;
  int64_t proof_ns_max = 5'000'000'000;
  // Keys that peers prove and that this node proves. Empty: nobody proves
  // anything.
  Credentials credentials = {};
  // Nanoseconds without a batch after which a session's watermark is persisted.
  int64_t idle_ns = 10'000'000;
  // Bytes of a ring that one Poll reads: a millisecond or two of a warm file.
  // More than 0.
  uint64_t slice_bytes = uint64_t{4} << 20;
  // Scrubbing of the replicas, one after the other.
  ScrubbingOptions scrubbing = {};
  // Makes the logs that Format asks for; nullptr: none are made.
  LogCreator* creator = nullptr;
  // Called when a process of this machine wants the log's region (Release).
  // RemoveLog is to follow, but not from inside the call. Not set: refused.
  std::function<void(Uuid log_id)> release;
  // Returns why this node does not serve a log of which it has a replica, or OK
  // if it has none. Asked for logs that were not added. Not set: it has none.
  std::function<absl::Status(Uuid log_id)> unserved;
  // Returns the Welcome of such a replica while another process of this machine
  // has its region; else as `unserved`. Not set: no process may hold a region.
  std::function<absl::StatusOr<Welcome>(Uuid log_id)> held;
  // Returns the reply to a Follow of such a replica. Not set: followers are
  // sent away.
  std::function<absl::StatusOr<Followed>(Uuid log_id)> held_followed;
  // Returns the process that has the region, for messages: " (process 1234)",
  // or nothing where the system does not tell. Not set: nothing.
  std::function<std::string(Uuid log_id)> describe_holder;
  // How long an opener waits for the local primary to step down before it is
  // refused, in nanoseconds from the moment at which the primary was told.
  int64_t give_way_ns = 200'000'000;
  // How long an asker waits for bytes of the local primary's ring, in
  // nanoseconds.
  int64_t show_ns = 1'000'000'000;
  // Called when a process that held such a log may have let go. AddLog may
  // follow, but not from inside the call.
  std::function<void(Uuid log_id)> let_go;
  // Returns the name of a log for messages. Not set: its id.
  std::function<std::string(Uuid log_id)> name_of;
  // Gets one sentence, for an operator's log file, for each promise, each
  // session and the end of each primary.
  std::function<void(const std::string&)> note;
  // Gets one sentence for each connection that ends by an error; a peer that is
  // gone is no error. A repeated refusal of one host and reason is left out
  // (refusals.h).
  std::function<void(const std::string&)> report;
};

class ReplicaServer {
 public:
  // Counts since the start.
  struct Counters {
    uint64_t accepted = 0;  // connections
    uint64_t rejected = 0;
    uint64_t formatted = 0;  // logs
    uint64_t promised = 0;
    uint64_t refused = 0;  // promises
    uint64_t wanted = 0;   // promises that a local primary was told of
    uint64_t fenced = 0;   // connections that a promise closed
    uint64_t installed = 0;
    uint64_t gone = 0;    // primaries that went, with a promise or a session
    uint64_t failed = 0;  // connections that ended by an error
  };

  // Clock and fabric must outlive the server. The caller makes the fabric
  // listen; it carries messages of kMessageBytesMax.
  ReplicaServer(Fabric& fabric, const Clock& clock,
                ReplicaServerOptions options);
  // Closes all connections and persists watermarks.
  ~ReplicaServer();
  ReplicaServer(const ReplicaServer&) = delete;
  ReplicaServer& operator=(const ReplicaServer&) = delete;

  // Serves the log, waiting openers first. Errors: AlreadyExists.
  absl::Status AddLog(std::unique_ptr<ServedLog> log);
  // Ends all connections of the log, then returns it. Errors: NotFound.
  absl::StatusOr<std::unique_ptr<ServedLog>> RemoveLog(Uuid log_id);

  // Returns the logs whose medium failed. They make no more promises. Remove
  // each, and add it again once it is opened again.
  std::vector<Uuid> LogsWithFailedMedium() const;
  // Returns the logs in whose work memory ran out, or something else failed
  // that no status says. Their connections have ended and their objects may be
  // half done. Remove each, and add it again once it is opened again.
  std::vector<Uuid> StarvedLogs() const;

  // Takes what the fabric's Poll brought. Returns false if it belongs to no
  // connection of this server; every request to connect belongs to it. Where
  // memory runs out, the log that needed it ends (RS7).
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  // Persists and acknowledges what arrived, and checks the clock. Call it after
  // completions were taken, and at NextDeadline.
  void Poll();
  // Counts and reports a peer that the fabric ended before this server heard of
  // it, as if the server had ended it. Requires: `why` has a reason
  // (refusals.h).
  void NoteRefused(const std::string& peer, const absl::Status& why);

  // Returns when Poll has something to do by itself; not set: never.
  Deadline NextDeadline() const;

  // Takes credentials, numbers of places and scrubbing of these options.
  // Connections keep what they have proved, and their places.
  void Reconfigure(const ReplicaServerOptions& options);

  const Counters& counters() const { return counters_; }
  const Refusals& refusals() const { return refusals_; }
  size_t connection_count() const { return connections_.size(); }

 private:
  enum class Phase {
    kControl,
    kAnswering,
    kPromised,
    kPrepared,
    kInstalling,
    kSession,
    kHolding,
    kWaiting,
    kFetching,
    kEnding,
  };

  // The last use of a connection without a promise (RS4).
  enum class Place { kNew, kLooking, kFollowing, kAsking };

  struct Connection {
    ConnectionId id;
    std::string peer;
    Hello hello;
    // nullptr: not made yet, or another process has it
    ServedLog* log = nullptr;
    // Welcome of a log whose region another process has; empty: this one serves
    // it.
    std::optional<Welcome> held;
    AskPromise asked;  // kWaiting
    Fetch fetch;       // kFetching
    Phase phase = Phase::kControl;
    Place place = Place::kNew;
    Promise promise;  // last promise that it got
    std::optional<ReplicaHandshake> handshake;
    int64_t accepted_at = 0;  // nanoseconds

    std::unique_ptr<MessageSlots> slots;  // request and reply
    bool replying = false;                // the reply is being sent
    std::optional<uint64_t> request;  // length of a request that waits for that
    std::vector<std::byte> answer;
    Install install;              // request that is being served
    std::vector<RegionKey> keys;  // given to the peer; the answer's first

    int64_t heard_at = 0;        // nanoseconds
    bool is_heard = false;       // something came since the last Poll
    bool watermark_due = false;  // batches came since the last watermark

    // Returns true if the peer may make requests.
    bool is_proved() const { return handshake->is_over(); }
    bool ever_promised() const { return promise != Promise(); }
    bool is_holder() const {
      return phase != Phase::kControl && phase != Phase::kWaiting &&
             phase != Phase::kFetching && phase != Phase::kEnding;
    }
    // Returns true while work in slices runs for this connection.
    bool is_at_work() const {
      return phase == Phase::kAnswering || phase == Phase::kInstalling;
    }
  };

  // Runs `work`. Where memory runs out, ends the log's connections (RS7).
  template <class Work>
  void Guard(ConnectionId id, const Work& work);
  void Starve(ConnectionId id, ServedLog* log, const absl::Status& why);
  bool TakeOne(const ConnectionEvent& event);
  bool TakeOne(const Completion& completion);

  // Connections.
  absl::StatusOr<Connection> Admit(const ConnectionEvent& event);
  void OnRequested(const ConnectionEvent& event);
  absl::StatusOr<std::optional<Welcome>> LookAtHeld(const Hello& hello) const;
  absl::Status PostRequestReceive(const Connection& connection);
  Connection* Find(ConnectionId id);
  bool HasPlace(const Connection& connection, Place place) const;
  static Place PlaceFor(const Message& request);
  size_t PlacesOf(Place place) const;
  Connection* LongestSilent(Place place, const Connection& but);
  // Gives the connection a place; another one may have to make room.
  absl::Status TakePlace(Connection& connection, Place place);
  // Returns the oldest connection without a proof, or nullptr if there is room.
  Connection* OldestTooMany();
  // Two ways to end a connection: End closes it at once; Dismiss closes it once
  // a last message, such as Failed, was sent. Dismiss reports nothing by
  // itself.
  void End(ConnectionId id, const absl::Status& why);
  void EndGone(const Connection& connection);
  void Dismiss(Connection& connection, const Message& last);
  // Reports why, and dismisses with Failed.
  void Fail(Connection& connection, const absl::Status& why);
  // First step of both. Once the connection is closed or its keys are void, it
  // can't change the ring any more (RS2). Ends the log's work for it and frees
  // the memory of that work (RS4).
  absl::Status EndHolding(Connection& connection);
  void VoidKeys(Connection& connection);
  void Report(const Connection& connection, const absl::Status& why);
  std::string NameOf(Uuid log_id) const;
  std::string Describe(const Connection& connection) const;
  void Note(const Connection& connection, const std::string& what) const;
  // Reports `why`. Counts a refusal, and reports only the first of its kind.
  void Tell(const std::string& peer, const absl::Status& why,
            const std::string& what);

  // Requests.
  void OnControl(Connection& connection, const Completion& completion);
  void Serve(Connection& connection, uint64_t bytes);
  absl::Status Send(Connection& connection, const Message& reply);
  void SendReply(Connection& connection, const absl::StatusOr<Message>& reply);
  // Empty: the reply comes when the work is done.
  using MaybeReply = std::optional<Message>;
  absl::StatusOr<MaybeReply> Reply(Connection& connection,
                                   const Message& message);
  absl::StatusOr<MaybeReply> OnHandshake(Connection& connection,
                                         const Message& message);
  static absl::StatusOr<Message> OnAskCreation(const Connection& connection);
  absl::Status CheckReplaceable(const ServedLog& log,
                                const Format& format) const;
  absl::StatusOr<Message> OnFormat(Connection& connection,
                                   const Format& format);
  absl::StatusOr<Message> OnView(Connection& connection);
  absl::StatusOr<Message> OnFollow(const Connection& connection,
                                   const Follow& follow);
  absl::StatusOr<Message> OnRelease(const Connection& connection);
  absl::StatusOr<Message> OnScrub(const Connection& connection,
                                  const Scrub& scrub);
  absl::StatusOr<Message> OnFetch(const Connection& connection,
                                  const Fetch& fetch);
  static absl::Status CheckConfiguration(uint64_t own, const AskPromise& ask);
  static absl::Status CheckAsker(const Connection& connection,
                                 const Promise& promise);
  absl::StatusOr<MaybeReply> OnAskPromise(Connection& connection,
                                          const AskPromise& ask);
  absl::StatusOr<MaybeReply> Refusing(const Connection& connection,
                                      const Promise& request,
                                      const absl::Status& why);
  absl::StatusOr<Message> OnPrepare(Connection& connection,
                                    const Prepare& prepare);
  absl::StatusOr<MaybeReply> OnInstall(Connection& connection,
                                       const Install& install);
  absl::Status CheckHolder(const Connection& connection, Phase phase,
                           Epoch epoch, const char* what) const;
  // Makes all keys and connections void that the log gave out (RS1).
  void Fence(Connection& holder);
  void SayOvertaken(Connection& session, const Message& why);
  absl::StatusOr<RegionKey> GiveOut(Connection& connection,
                                    std::span<std::byte> bytes,
                                    RemoteAccess access);

  // Returns true if the log's ring belongs to a holder that has no session yet.
  bool IsBeingOpened(Uuid log_id) const;
  // The local primary of a log whose region is not this process's.
  struct Holder {
    ConnectionId connection;
    Promise promise;
    std::optional<int64_t> told_at;  // when a higher promise was first wanted
    Scrubbed scrubbed;               // its last report
    // A scrub was asked for: the primary is to be told, or was told.
    bool is_to_scrub = false;
    bool was_told_to_scrub = false;
    // The bytes that it is showing now, and the asker.
    std::optional<Fetch> fetch;
    ConnectionId fetching;
  };
  // Returns true if the local primary did not step down in time.
  bool IsStuck(const Holder& holder) const;
  absl::StatusOr<MaybeReply> ReplyOfHeld(Connection& connection,
                                         const Message& message);
  absl::StatusOr<MaybeReply> OnHold(Connection& connection, const Hold& hold);
  absl::StatusOr<MaybeReply> OnScrubOfHeld(const Connection& connection,
                                           const Scrub& scrub);
  absl::StatusOr<MaybeReply> OnFollowOfHeld(const Connection& connection,
                                            const Follow& follow) const;
  absl::StatusOr<MaybeReply> OnFetchOfHeld(Connection& connection,
                                           const Fetch& fetch);
  absl::StatusOr<MaybeReply> OnFetched(Connection& connection,
                                       const Fetched& fetched);
  absl::StatusOr<Holder*> HolderOf(Uuid log_id);
  // Sends the local primary the next request that waits for it.
  void TellNext(Uuid log_id);
  void RelayScrub(Holder& holder);
  void RelayFetch(Uuid log_id, Holder& holder);
  absl::StatusOr<MaybeReply> OnAskOfHeld(Connection& connection,
                                         const AskPromise& ask);
  absl::StatusOr<MaybeReply> TellHolder(Connection& asker);
  std::vector<ConnectionId> WaitingFor(Uuid log_id) const;
  int64_t WaitsUntil(const Connection& asker) const;
  void EndHold(const Connection& connection);
  void ServeWaiting(ServedLog& log);

  // Work in slices.
  void WorkOn();
  Connection* NextAtWork();
  absl::StatusOr<Message> AfterWork(Connection& connection);
  absl::StatusOr<Message> Answered(Connection& connection);
  absl::StatusOr<Message> AfterInstall(Connection& connection);

  // Time.
  void StepSessions();
  // Persists the session's watermark once the session is idle.
  void RestSession(Connection& connection, int64_t now);
  absl::Status WhyTooLate(const Connection& connection) const;
  std::optional<int64_t> DueAt(const Connection& connection) const;

  Fabric& fabric_;
  const Clock& clock_;
  ReplicaServerOptions options_;
  std::map<Uuid, std::unique_ptr<ServedLog>> logs_;
  std::set<const ServedLog*> starved_;  // of `logs_`
  bool all_starved_ = false;            // there was no memory to say which
  std::map<ConnectionId, Connection> connections_;
  std::map<Uuid, Holder> holders_;
  std::set<Uuid> released_;  // logs given to a local process; until removed
  ConnectionId worked_;      // connection that had the last slice
  Counters counters_;
  Refusals refusals_;
  Scrubbing scrubbing_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_SERVER_REPLICA_SERVER_H_
