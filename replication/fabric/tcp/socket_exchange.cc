// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/socket_exchange.h"

#include <utility>

namespace alpheus::fabric::tcp {

void SocketExchange::Join(uint32_t adapter, Poller& poller) {
  Inbox& inbox = inboxes_[adapter];
  const MutexLock lock(inbox.mutex);
  inbox.poller = &poller;
}

void SocketExchange::Leave(uint32_t adapter) {
  Inbox& inbox = inboxes_[adapter];
  std::deque<TravellingSocket> closed;  // after the lock is released
  const MutexLock lock(inbox.mutex);
  inbox.poller = nullptr;
  closed.swap(inbox.sockets);
  inbox.count.store(0, std::memory_order_relaxed);
}

void SocketExchange::Bring(uint32_t adapter, TravellingSocket socket) {
  Inbox& inbox = inboxes_[adapter];
  TravellingSocket closed;  // after the lock is released
  const MutexLock lock(inbox.mutex);
  if (inbox.poller == nullptr) {  // XCH4
    closed = std::move(socket);
    return;
  }
  const bool is_full = inbox.sockets.size() >= kInboxMax;
  if (is_full) {  // XCH3
    closed = std::move(inbox.sockets.front());
    inbox.sockets.pop_front();
  }
  inbox.sockets.push_back(std::move(socket));
  inbox.count.store(inbox.sockets.size(), std::memory_order_relaxed);
  inbox.poller->Wake();
}

std::deque<TravellingSocket> SocketExchange::TakeFor(uint32_t adapter) {
  Inbox& inbox = inboxes_[adapter];
  const MutexLock lock(inbox.mutex);
  inbox.count.store(0, std::memory_order_relaxed);
  return std::exchange(inbox.sockets, {});
}

}  // namespace alpheus::fabric::tcp
