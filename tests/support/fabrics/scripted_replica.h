// SPDX-License-Identifier: Apache-2.0
// scripted_replica: a replica's end of the messages of recovery, for tests of
// the primary's.
//
// It answers as the protocol says, with a real LocalReplica on modelled memory,
// and lets a test look at each request, or leave it without a reply.
#ifndef ALPHEUS_TESTS_SUPPORT_FABRICS_SCRIPTED_REPLICA_H_
#define ALPHEUS_TESTS_SUPPORT_FABRICS_SCRIPTED_REPLICA_H_

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "recovery/protocol/messages.h"
#include "recovery/replica/local_replica.h"
#include "replication/fabric/fabric.h"
#include "replication/session/backup_session.h"
#include "replication/wire/message_slots.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

class ScriptedReplica {
 public:
  using Model = model::ModelPersistence;
  // Makes the replica that Format asks for.
  using Formatter = std::function<absl::Status(const recovery::Format&)>;

  // `replica` may be null: there is none, until the formatter made one.
  ScriptedReplica(fabric::Fabric& fabric, NodeId node, Model& pmem,
                  recovery::LocalReplica<Model>* replica,
                  Formatter format = nullptr)
      : fabric_(fabric),
        node_(node),
        pmem_(pmem),
        replica_(replica),
        format_(std::move(format)) {}

  // False: the request gets no reply.
  std::function<bool(const recovery::Message&)> on_request;
  // Change what is sent.
  std::function<void(recovery::ServerHello&)> on_server_hello;
  std::function<void(recovery::StateReport&)> on_report;
  std::function<void(std::vector<std::byte>&)> on_reply;
  // The replies to Challenge and Prove; without it a test's primary has no key.
  std::function<recovery::Message(const recovery::Message&)> on_proof;
  // An error: the connection is rejected with it.
  std::function<absl::Status()> on_connect;

  void SetReplica(recovery::LocalReplica<Model>* replica) {
    replica_ = replica;
  }
  void OnConnectionEvent(const fabric::ConnectionEvent& event);
  void OnCompletion(const fabric::Completion& completion);
  // Persists and acknowledges what sessions got.
  void Step();
  // Closes all connections that ever got a promise, as a process does that
  // promised another primary, or itself.
  void Fence(fabric::ConnectionId keep = fabric::ConnectionId());
  int sessions() const;

 private:
  struct Connection {
    recovery::Hello hello;
    std::unique_ptr<replication::MessageSlots>
        slots;  // 0 is received, 1 is sent
    std::vector<fabric::RegionKey> keys;
    std::vector<std::byte> report;
    std::unique_ptr<replication::BackupSession<Model>> session;
  };

  void Close(fabric::ConnectionId id);
  void OnRequested(const fabric::ConnectionEvent& event);
  recovery::Message Reply(fabric::ConnectionId id, Connection& connection,
                          const recovery::Message& request);
  absl::StatusOr<recovery::Message> TryReply(fabric::ConnectionId id,
                                             Connection& connection,
                                             const recovery::Message& request);

  fabric::Fabric& fabric_;
  const NodeId node_;
  Model& pmem_;
  recovery::LocalReplica<Model>* replica_;
  Formatter format_;
  std::map<fabric::ConnectionId, Connection> connections_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_FABRICS_SCRIPTED_REPLICA_H_
