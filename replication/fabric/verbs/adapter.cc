// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/adapter.h"

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "replication/fabric/verbs/queue_pair.h"

namespace alpheus::fabric::verbs {
namespace {

uint32_t Lower(uint32_t wanted, int most, uint32_t reserve) {
  const auto limit = static_cast<uint32_t>(std::max(most, 0));
  return limit <= reserve ? 0 : std::min(wanted, limit - reserve);
}

absl::Status Refuses(const Adapter& adapter, const char* call, int error) {
  return absl::UnavailableError(
      absl::StrCat(adapter.device, ": ", call, ": ", std::strerror(error)));
}

absl::Status Ask(Adapter* adapter) {
  if (const int error =
          ibv_query_device(adapter->context, &adapter->attributes);
      error != 0) {
    return Refuses(*adapter, "ibv_query_device", error);
  }
  ibv_device_attr_ex more = {};
  if (ibv_query_device_ex(adapter->context, nullptr, &more) == 0) {
    adapter->pages_on_demand =
        (more.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0;
    adapter->native =
        NativeAbilitiesOf(adapter->context, more.device_cap_flags_ex);
  }
  adapter->message_bytes_max = std::numeric_limits<uint32_t>::max();
  for (uint8_t port = 1; port <= adapter->attributes.phys_port_cnt; ++port) {
    ibv_port_attr attributes = {};
    const int error = ibv_query_port(adapter->context, port, &attributes);
    if (error != 0) return Refuses(*adapter, "ibv_query_port", error);
    adapter->message_bytes_max =
        std::min(adapter->message_bytes_max, attributes.max_msg_sz);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Adapter> FindAdapter(const std::string& name) {
  int count = 0;
  ibv_context** const contexts = rdma_get_devices(&count);
  Adapter adapter;
  std::string known;
  for (int i = 0; contexts != nullptr && i < count; ++i) {
    const char* const device = ibv_get_device_name(contexts[i]->device);
    absl::StrAppend(&known, known.empty() ? "" : ", ", device);
    if (adapter.context == nullptr && (name.empty() || name == device)) {
      // It stays open while the process runs: rdma_cm keeps it.
      adapter.context = contexts[i];
      adapter.device = device;
    }
  }
  if (contexts != nullptr) rdma_free_devices(contexts);
  if (adapter.context == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no RDMA adapter", name.empty() ? "" : " \"", name,
        name.empty() ? "" : "\"", " on this machine; there ",
        known.empty() ? std::string("is none") : absl::StrCat("is ", known),
        ". See ibv_devices(1), and that rdma_ucm is loaded"));
  }
  if (absl::Status status = Ask(&adapter); !status.ok()) return status;
  return adapter;
}

Fabric::Limits LowerTo(const Adapter& adapter, Fabric::Limits wanted) {
  const ibv_device_attr& most = adapter.attributes;
  // Sends and receives share a completion queue.
  const int entries = std::min(most.max_qp_wr, most.max_cqe / 2);
  wanted.sends_max = Lower(wanted.sends_max, entries, kGreetingsPosted);
  wanted.receives_max = Lower(wanted.receives_max, entries, kGreetingsPosted);
  wanted.message_bytes_max =
      std::min(wanted.message_bytes_max, uint64_t{adapter.message_bytes_max});
  wanted.native_flush &= adapter.native.flush;
  wanted.atomic_write &= adapter.native.atomic_write;
  return wanted;
}

}  // namespace alpheus::fabric::verbs
