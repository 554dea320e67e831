// SPDX-License-Identifier: Apache-2.0
// polled: the result of Poll, for a class that the network or the clock drives,
// and whose caller must know whether something changed
// (docs/design/architecture.md, "The poll rule"). ReplicaServer, RemoteTail,
// Membership and Scrubbing have no news for a caller: their Poll returns void.
// Fabric::Poll returns a count of completions.
#ifndef ALPHEUS_LOG_BASE_POLLED_H_
#define ALPHEUS_LOG_BASE_POLLED_H_

namespace alpheus {

enum class Polled {
  kIdle,   // nothing for the caller to see; wait for an arrival, or NextPoll()
  kMoved,  // the state may have changed: look at it, and poll again
  kDone,   // over: there is a result or an error, and no more to do
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_POLLED_H_
