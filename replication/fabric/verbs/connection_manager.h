// SPDX-License-Identifier: Apache-2.0
// connection_manager: the adapter's connection manager (rdma_cm): the address
// on which it listens, the ids of connections, and what it reports.
//
// Idea: the manager reports by events, which must be acknowledged before the id
// that they name may end. This class acknowledges each and hands out a copy of
// what it says.
//
// Thread safety: none; the adapter's lock guards it.
// References: docs/design/fabric.md; rdma_cm(7).
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_CONNECTION_MANAGER_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_CONNECTION_MANAGER_H_

#include <rdma/rdma_cma.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replication/fabric/verbs/handles.h"

namespace alpheus::fabric::verbs {

class ConnectionManager {
 public:
  struct Event {
    rdma_cm_event_type type;
    rdma_cm_id* id;   // of a connection, a listener, or a new request
    bool is_calling;  // of a request: its data is a call (greeting.h)
  };

  // Takes a descriptor. Returns false, with errno, if there is none. The calls
  // below require that it was successful.
  bool Open();
  int descriptor() const { return events_->fd; }
  // Makes the descriptor non-blocking.
  absl::Status SetNonBlocking() const;

  // Returns the id of a connection that is to begin, or null.
  CommunicationId MakeId();
  // Listens; returns the address. Errors: AlreadyExists (it listens already,
  // or another process does); InvalidArgument; Unavailable.
  absl::StatusOr<std::string> Listen(std::string_view address);

  // Returns the next event, or nothing. Its id is not used by the manager any
  // more, and may end.
  std::optional<Event> NextEvent();
  // Ends the listener, if the id is its. Removal of the adapter waits for it.
  bool EndListener(const rdma_cm_id* id);

 private:
  EventChannel events_;
  CommunicationId listener_;
  std::string listens_on_;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_CONNECTION_MANAGER_H_
