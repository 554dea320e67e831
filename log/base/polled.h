// SPDX-License-Identifier: Apache-2.0
// polled: what Poll returns, of every class that the network or the clock
// drives (docs/design/architecture.md, "The poll rule").
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
