// SPDX-License-Identifier: Apache-2.0
// updated_memory: a region that clients may update, with the way to persist it.
//
// Idea: an offer is of any medium, and a node has several. So the type of the
// persistence backend ends here, where one call is made for a message, and no
// call for a store.
//
// Thread safety: one thread.
#ifndef ALPHEUS_API_REMOTE_UPDATED_MEMORY_H_
#define ALPHEUS_API_REMOTE_UPDATED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/status_macros.h"
#include "log/pmem/persistence.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/execute/update_responder.h"
#include "replication/persist/platform/method.h"

namespace alpheus::remote {

// The node's end of one client's updates.
class UpdatesOfClient {
 public:
  virtual ~UpdatesOfClient() = default;
  // As UpdateResponder's.
  virtual absl::Status OnCompletion(const fabric::Completion& completion) = 0;
  virtual uint64_t wake_ups() const = 0;
};

struct UpdateTermsOfClient {
  replication::SessionId session;
  uint32_t credits = 0;
  uint64_t message_bytes_max = 0;
};

class UpdatedMemory {
 public:
  virtual ~UpdatedMemory() = default;

  virtual std::span<std::byte> bytes() const = 0;
  // Begins to serve updates by these steps. Errors: as UpdateResponder::Start.
  virtual absl::StatusOr<std::unique_ptr<UpdatesOfClient>> Start(
      std::span<const replication::Step> steps,
      const UpdateTermsOfClient& terms, fabric::Fabric& fabric,
      fabric::ConnectionId connection) = 0;
};

template <Persistence P>
class UpdatedMemoryOf final : public UpdatedMemory {
 public:
  // Both must outlive the object.
  UpdatedMemoryOf(P& pmem, std::span<std::byte> bytes)
      : pmem_(pmem), bytes_(bytes) {}

  std::span<std::byte> bytes() const override { return bytes_; }
  absl::StatusOr<std::unique_ptr<UpdatesOfClient>> Start(
      std::span<const replication::Step> steps,
      const UpdateTermsOfClient& terms, fabric::Fabric& fabric,
      fabric::ConnectionId connection) override {
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<replication::UpdateResponder<P>> responder,
        replication::UpdateResponder<P>::Start(
            pmem_, steps,
            {.session = terms.session,
             .credits = terms.credits,
             .message_bytes_max = terms.message_bytes_max,
             .region = bytes_},
            fabric, connection));
    return std::make_unique<Updates>(std::move(responder));
  }

 private:
  class Updates final : public UpdatesOfClient {
   public:
    explicit Updates(std::unique_ptr<replication::UpdateResponder<P>> responder)
        : responder_(std::move(responder)) {}
    absl::Status OnCompletion(const fabric::Completion& completion) override {
      return responder_->OnCompletion(completion);
    }
    uint64_t wake_ups() const override { return responder_->wake_ups(); }

   private:
    const std::unique_ptr<replication::UpdateResponder<P>> responder_;
  };

  P& pmem_;
  const std::span<std::byte> bytes_;
};

}  // namespace alpheus::remote

#endif  // ALPHEUS_API_REMOTE_UPDATED_MEMORY_H_
