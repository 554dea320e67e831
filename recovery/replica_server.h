// SPDX-License-Identifier: Apache-2.0
// replica_server: a node's side of opening epochs, and of the sessions that
// follow: any number of logs, one connection per primary process and log.
//
// Idea: a connection goes through phases, and each message has its phase; what
// comes out of turn costs its sender the connection, and nobody else anything.
//
// Where the cluster has a key, a connection proves it first (handshake.h); what
// else is asked for before that costs it the connection. Then:
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
// Whoever gets the promise of a log is its only holder: phases from kAnswering
// to kSession belong to one connection of each log.
//
// The region of a log may be another process's of this machine, a primary with
// this node's replica (P-A7). It says so by Hold; whoever asks for a promise
// meanwhile waits (kWaiting) until the primary, which hears of it by Wanted,
// has given the region up and AddLog follows. What others want scrubbed it
// hears the same way, and says in its next Hold how far that is. So it hears
// what others want to have of its ring, one after the other, and shows it.
//
// Scans and installations look at the whole ring, which takes seconds where it
// has some GiB. They run in slices, one in each Poll, one after the other where
// several are asked for: sessions of other logs wait for a slice, and no
// longer.
//
// Invariants:
//   RS1. Before the replica looks at its ring to answer a promise, the promise
//        is persisted, all other connections of the log that ever held one are
//        closed, and every key that was given out is void (P-H6, P-R2,
//        P-INV-6). Each of the last two is a fence by itself (FB5 of fabric.h);
//        both, because a key opens its region on every connection.
//   RS2. From there on the ring changes only through the holder's connection:
//        keys that allow writes exist between Prepared and the holder's end.
//   RS3. Exactly one control receive is posted while requests may come, and
//        none when the session posts its own: receives are used up in order.
//   RS4. Memory is bounded: connections without a promise are limited in number
//        and in the time they may be silent; each log has one holder. Those
//        without a proof are counted by themselves, and the oldest makes room:
//        strangers take no place of those who have the key. Those with one have
//        places by what they asked for last: who is new, looks at a region,
//        follows, or asks for anything else takes no place of another kind, and
//        the one that was silent for longest makes room. So readers, however
//        many, keep out no opening and no look; followers that go on asking are
//        refused when there are too many.
//   RS5. A primary is told of a promise only if whoever asks for it has proved
//        the key, and if it is above the primary's. Of a log that is not this
//        server's nothing is promised; nobody but who asks for promises makes a
//        primary give way.
//   RS6. What a primary shows goes to who asked for it, and is no more than
//        that.
//   RS7. Work in which memory runs out ends all connections of its log, and the
//        log is served no more until it is opened anew: nothing that is half
//        done is gone on with, and other logs go on.
//   RS8. A session that another primary ends is told so before its connection
//        is closed: by Refused, with the promise that stands; by Released, if a
//        process of this machine takes the replica. Nobody waits until it has
//        heard: an adapter that drops what is under way when it closes (FB5)
//        drops this, too.
// Thread safety: one thread.
// References: protocol P-A2, P-A4.2, P-A4.5, P-A7, P-H6, P-H16, P-H17, P-H21,
// P-R1, P-R2; messages.h; docs/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_REPLICA_SERVER_H_
#define ALPHEUS_RECOVERY_REPLICA_SERVER_H_

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
#include "quorum/promise.h"
#include "recovery/handshake.h"
#include "recovery/messages.h"
#include "recovery/refusals.h"
#include "recovery/scrubbing.h"
#include "recovery/served_log.h"
#include "replication/fabric/fabric.h"
#include "replication/message_slots.h"
#include "replication/persist/platform.h"

namespace alpheus {

struct ReplicaServerOptions {
  Uuid cluster_id;
  NodeId node;
  // Of all its replicas; primaries are told.
  Platform platform = {};
  // Connections without a promise: that many of each kind, and silent for that
  // long (RS4); more than 0.
  size_t waiting_connections_max = 32;
  size_t followers_max = 64;
  int64_t silence_ns_max = 30'000'000'000;
  // Without a proof of the key, where there is one: that many, for that long.
  size_t unproved_connections_max = 32;
  int64_t proof_ns_max = 5'000'000'000;
  // What peers are to prove, and what this node proves; without a key nobody
  // proves anything.
  Credentials credentials = {};
  // A session without a batch for so long gets its watermark persisted.
  int64_t idle_ns = 10'000'000;
  // Of a ring, looked at in one Poll: a millisecond or two of a warm file. More
  // than 0.
  uint64_t slice_bytes = uint64_t{4} << 20;
  // Of its replicas, one after the other.
  ScrubbingOptions scrubbing = {};
  // Makes logs that are asked for (Format); nullptr: none are made.
  LogCreator* creator = nullptr;
  // Is told that a process of this machine wants the log's region (Release);
  // RemoveLog is to follow, not from inside the call. Not set: refused.
  std::function<void(Uuid log_id)> release;
  // Says why this node does not serve a log of which it has a replica; OK if it
  // has none. Asked of logs that were not added; nullptr: it has none.
  std::function<absl::Status(Uuid log_id)> unserved;
  // What the replica of such a log says of itself, while another process of
  // this machine has its region; else as `unserved`. Not set: nobody may hold.
  std::function<absl::StatusOr<Welcome>(Uuid log_id)> held;
  // The same, as the reply to a Follow. Not set: who follows is sent away.
  std::function<absl::StatusOr<Followed>(Uuid log_id)> held_followed;
  // Which process that is, for messages: " (process 1234)", or nothing where
  // the system does not tell. Not set: nothing.
  std::function<std::string(Uuid log_id)> describe_holder;
  // So long after such a process was told that its replica is wanted others
  // wait; then they hear that it does not give way.
  int64_t give_way_ns = 200'000'000;
  // So long who wants bytes of its ring waits for it.
  int64_t show_ns = 1'000'000'000;
  // Is told that a process that held such a log may have let go; AddLog may
  // follow, not from inside the call.
  std::function<void(Uuid log_id)> let_go;
  // What messages call a log; not set: by its id.
  std::function<std::string(Uuid log_id)> name_of;
  // Gets one sentence for each promise, each session and the end of each
  // primary: what an operator wants to find in a file of messages.
  std::function<void(const std::string&)> note;
  // Gets one sentence for each connection that ends by an error; that a peer
  // has gone is none. Of refusals, the first of a host and reason (refusals.h).
  std::function<void(const std::string&)> report;
};

class ReplicaServer {
 public:
  // What happened since the start.
  struct Counters {
    uint64_t accepted = 0;  // connections
    uint64_t rejected = 0;
    uint64_t formatted = 0;  // logs
    uint64_t promised = 0;
    uint64_t refused = 0;  // promises
    uint64_t wanted = 0;   // promises that another process was told of
    uint64_t fenced = 0;   // connections, for a promise
    uint64_t installed = 0;
    uint64_t gone = 0;    // primaries, with a promise or a session
    uint64_t failed = 0;  // connections that ended by an error
  };

  // Clock and fabric must outlive it. The fabric listens by somebody else's
  // care, and carries messages of kMessageBytesMax.
  ReplicaServer(Fabric& fabric, const Clock& clock,
                ReplicaServerOptions options);
  // Closes its connections; watermarks are persisted.
  ~ReplicaServer();
  ReplicaServer(const ReplicaServer&) = delete;
  ReplicaServer& operator=(const ReplicaServer&) = delete;

  // Serves the log from here on, those first who wait for it. Errors:
  // AlreadyExists.
  absl::Status AddLog(std::unique_ptr<ServedLog> log);
  // Ends all its connections, then gives it back. Errors: NotFound.
  absl::StatusOr<std::unique_ptr<ServedLog>> RemoveLog(Uuid log_id);

  // Those whose medium failed: nobody is promised anything by them any more.
  // Remove them, and add them again once they are opened anew.
  std::vector<Uuid> LogsWithFailedMedium() const;
  // Those in whose work memory ran out, or something else that no status says:
  // their connections have ended, and what the replica's objects hold may be
  // half done. Remove them, and add them again once they are opened anew.
  std::vector<Uuid> StarvedLogs() const;

  // What the fabric's Poll brought. False: it is of no connection of this
  // server; every request to connect is.
  // Where memory runs out, what it was needed for ends (RS7).
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  // Persists and acknowledges what arrived, and looks at the clock. To be
  // called after completions were taken, and at NextDeadline.
  void Poll();
  // The fabric ended a peer, or is about to, before this server heard of it:
  // counted and told as those that the server ends. Requires: `why` has a
  // reason (refusals.h).
  void NoteRefused(const std::string& peer, const absl::Status& why);

  // When Poll has something to do by itself; not set: never.
  Deadline NextDeadline() const;

  // Takes credentials, numbers of places and of scrubbing as these options
  // have them; connections keep what they have proved and their places.
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

  // What one without a promise was for last (RS4).
  enum class Place { kNew, kLooking, kFollowing, kAsking };

  struct Connection {
    ConnectionId id;
    std::string peer;
    Hello hello;
    ServedLog* log = nullptr;  // nullptr: not made yet, or held
    // Of a log whose region another process has: what was said of it.
    std::optional<Welcome> held;
    AskPromise asked;  // kWaiting
    Fetch fetch;       // kFetching
    Phase phase = Phase::kControl;
    Place place = Place::kNew;
    Promise promise;  // the last one that it got
    std::optional<ReplicaHandshake> handshake;
    int64_t accepted_at = 0;  // nanoseconds

    std::unique_ptr<MessageSlots> slots;  // request and reply
    bool replying = false;                // the reply is under way
    std::optional<uint64_t> request;      // bytes of one that waits for that
    std::vector<std::byte> answer;
    Install install;              // under way
    std::vector<RegionKey> keys;  // given out; the answer's first

    int64_t heard_at = 0;        // nanoseconds
    bool is_heard = false;       // since the last Poll, which notes when
    bool watermark_due = false;  // batches came since it was persisted

    // May ask for something.
    bool is_proved() const { return handshake->is_over(); }
    bool ever_promised() const { return promise != Promise(); }
    bool is_holder() const {
      return phase != Phase::kControl && phase != Phase::kWaiting &&
             phase != Phase::kFetching && phase != Phase::kEnding;
    }
    // In slices.
    bool is_at_work() const {
      return phase == Phase::kAnswering || phase == Phase::kInstalling;
    }
  };

  // RS7.
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
  // Another one may make room for it.
  absl::Status TakePlace(Connection& connection, Place place);
  // Without a proof; nullptr if there are fewer than may be.
  Connection* OldestTooMany();
  // The two ways to end: at once; or when a last word, such as Failed, has been
  // said. The latter is no news by itself.
  void End(ConnectionId id, const absl::Status& why);
  void EndGone(const Connection& connection);
  void Dismiss(Connection& connection, const Message& last);
  // Tells why, and dismisses with it.
  void Fail(Connection& connection, const absl::Status& why);
  // What both do first: nothing of it can change the ring any more (RS2) once
  // the connection is closed, or the keys are void. What the log did for it is
  // given up, with the memory that this took (RS4).
  absl::Status EndHolding(Connection& connection);
  void VoidKeys(Connection& connection);
  void Report(const Connection& connection, const absl::Status& why);
  std::string NameOf(Uuid log_id) const;
  std::string Describe(const Connection& connection) const;
  void Note(const Connection& connection, const std::string& what) const;
  // Counts it if it is a refusal, and is silent if it is not the first.
  void Tell(const std::string& peer, const absl::Status& why,
            const std::string& what);

  // Requests.
  void OnControl(Connection& connection, const Completion& completion);
  void Serve(Connection& connection, uint64_t bytes);
  absl::Status Send(Connection& connection, const Message& reply);
  void SendReply(Connection& connection, const absl::StatusOr<Message>& reply);
  // Nothing: the reply comes when the work is done.
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
  // All that was given out for the log becomes void (RS1).
  void Fence(Connection& holder);
  void SayOvertaken(Connection& session, const Message& why);
  absl::StatusOr<RegionKey> GiveOut(Connection& connection,
                                    std::span<std::byte> bytes,
                                    RemoteAccess access);

  // Whether its log's ring is somebody's who has no session yet.
  bool IsBeingOpened(Uuid log_id) const;
  // Logs whose region another process of this machine has.
  struct Holder {
    ConnectionId connection;
    Promise promise;
    std::optional<int64_t> told_at;  // that somebody wants a higher one
    Scrubbed scrubbed;               // as it said last
    // Somebody wants it to begin: it is to hear of it, or has heard.
    bool is_to_scrub = false;
    bool was_told_to_scrub = false;
    // What it is to show now, and to whom.
    std::optional<Fetch> fetch;
    ConnectionId fetching;
  };
  // It was told, and did nothing.
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
  // It may be told one thing: what others want of it.
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
  // What a session asks for by time: its watermark once it rests.
  void RestSession(Connection& connection, int64_t now);
  absl::Status WhyTooLate(const Connection& connection) const;
  std::optional<int64_t> DueAt(const Connection& connection) const;

  Fabric& fabric_;
  const Clock& clock_;
  ReplicaServerOptions options_;
  std::map<Uuid, std::unique_ptr<ServedLog>> logs_;
  std::set<const ServedLog*> starved_;  // of them
  bool all_starved_ = false;            // there was no memory to say which
  std::map<ConnectionId, Connection> connections_;
  std::map<Uuid, Holder> holders_;
  std::set<Uuid> released_;  // to who asked; until they are removed
  ConnectionId worked_;      // whose slice was the last one
  Counters counters_;
  Refusals refusals_;
  Scrubbing scrubbing_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REPLICA_SERVER_H_
