// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/device_news.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "log/base/mutex.h"

namespace alpheus::fabric::verbs {
namespace {

struct Listener {
  ibv_context* context = nullptr;
  const WakeUp* wake = nullptr;
  DeviceFailures failures;
  bool is_gone = false;
};

// Listeners of this process, as contexts are of the process.
struct Listeners {
  Mutex mutex;
  std::map<const DeviceNews*, Listener> all ABSL_GUARDED_BY(mutex);
};

Listeners& AllListeners() {
  static auto* const listeners = new Listeners();  // outlives all fabrics
  return *listeners;
}

const char* FailureOfAll(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ERR:
      return "the adapter's port went down";
    case IBV_EVENT_DEVICE_FATAL:
      return "the adapter failed, or was taken away";
    case IBV_EVENT_CQ_ERR:
      return "the adapter lost completions";
    default:
      return nullptr;
  }
}

bool IsOfQueuePair(ibv_event_type type) {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_PATH_MIG_ERR;
}

void Note(const ibv_async_event& event, Listener* listener) {
  if (const char* const why = FailureOfAll(event.event_type)) {
    DeviceFailures& failures = listener->failures;
    const bool is_of_port = event.event_type == IBV_EVENT_PORT_ERR;
    const auto port =
        static_cast<uint8_t>(is_of_port ? event.element.port_num : 0);
    failures.port = failures.all == nullptr || failures.port == port ? port : 0;
    failures.all = why;
    listener->is_gone |= event.event_type == IBV_EVENT_DEVICE_FATAL;
  } else if (IsOfQueuePair(event.event_type)) {
    listener->failures.queue_pairs.insert(event.element.qp->qp_num);
  } else {
    return;
  }
  listener->wake->Wake();
}

void TakeAll(ibv_context* context, Listeners* listeners)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(listeners->mutex) {
  ibv_async_event event = {};
  while (ibv_get_async_event(context, &event) == 0) {
    for (auto& [news, listener] : listeners->all) {
      if (listener.context == context) Note(event, &listener);
    }
    ibv_ack_async_event(&event);  // VA2
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceNews>> DeviceNews::Of(ibv_context* context,
                                                           const WakeUp* wake) {
  absl::Status status = SetNonBlocking(context->async_fd);
  if (!status.ok()) return status;
  return std::unique_ptr<DeviceNews>(new DeviceNews(context, wake));
}

DeviceNews::DeviceNews(ibv_context* context, const WakeUp* wake)
    : context_(context) {
  Listeners& listeners = AllListeners();
  MutexLock lock(listeners.mutex);
  TakeAll(context, &listeners);  // old news do not concern a new one
  Listener& listener = listeners.all[this];
  listener.context = context;
  listener.wake = wake;
}

DeviceNews::~DeviceNews() {
  Listeners& listeners = AllListeners();
  MutexLock lock(listeners.mutex);
  listeners.all.erase(this);
}

DeviceFailures DeviceNews::Take() {
  Listeners& listeners = AllListeners();
  MutexLock lock(listeners.mutex);
  TakeAll(context_, &listeners);
  DeviceFailures failures =
      std::exchange(listeners.all[this].failures, DeviceFailures());
  return failures;
}

bool DeviceNews::IsGone() {
  Listeners& listeners = AllListeners();
  MutexLock lock(listeners.mutex);
  TakeAll(context_, &listeners);
  return listeners.all[this].is_gone;
}

}  // namespace alpheus::fabric::verbs
