// SPDX-License-Identifier: Apache-2.0
// openers_replica: the replica, or the working copy, in the primary's own
// process, as the opening of an epoch sees it.
//
// Idea: an opening calls its own replica a few times and otherwise speaks to
// peers. With the persistence policy behind an interface, the opening is no
// template.
//
// Thread safety: as LocalReplica.
#ifndef ALPHEUS_RECOVERY_REPLICA_OPENERS_REPLICA_H_
#define ALPHEUS_RECOVERY_REPLICA_OPENERS_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "recovery/replica/local_replica.h"

namespace alpheus::recovery {

// The calls of local_replica.h, with their contracts. AcceptPromise also does
// what LocalReplica leaves to its caller: when it returns OK, all earlier
// sessions are destroyed, and none of them writes here any more (P-H6).
class OpenersReplica {
 public:
  virtual ~OpenersReplica() = default;

  virtual const std::string& name() const = 0;
  virtual const Superline& superline() const = 0;
  virtual Ring ring() const = 0;
  virtual absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& request) = 0;
  virtual absl::Status StartStateReport(bool from_head) = 0;
  virtual StateReport TakeStateReport() = 0;
  virtual absl::Status BeginRepair(Epoch epoch) = 0;
  virtual absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling) = 0;
  virtual absl::Status StartInstall(const Installation& installation) = 0;
  virtual absl::StatusOr<bool> Continue(uint64_t bytes_max) = 0;
  virtual RingLogStart StartOfLog() = 0;
};

template <Persistence P>
class LocalOpenersReplica : public OpenersReplica {
 public:
  // `replica` must outlive the object. `fence` destroys all sessions and keys
  // that this process issued for the replica. Empty: the process serves
  // nobody.
  LocalOpenersReplica(LocalReplica<P>& replica, std::function<void()> fence)
      : replica_(replica), fence_(std::move(fence)) {}

  const std::string& name() const override { return replica_.name(); }
  const Superline& superline() const override { return replica_.superline(); }
  Ring ring() const override { return replica_.ring(); }
  absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& request) override {
    absl::StatusOr<quorum::PromiseVerdict> verdict =
        replica_.AcceptPromise(request);
    if (verdict.ok() && fence_) fence_();
    return verdict;
  }
  absl::Status StartStateReport(bool from_head) override {
    return replica_.StartStateReport(from_head);
  }
  StateReport TakeStateReport() override { return replica_.TakeStateReport(); }
  absl::Status BeginRepair(Epoch epoch) override {
    return replica_.BeginRepair(epoch);
  }
  absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling) override {
    return replica_.RaiseCeiling(epoch, ceiling);
  }
  absl::Status StartInstall(const Installation& installation) override {
    return replica_.StartInstall(installation);
  }
  absl::StatusOr<bool> Continue(uint64_t bytes_max) override {
    return replica_.Continue(bytes_max);
  }
  RingLogStart StartOfLog() override { return replica_.StartOfLog(); }

 private:
  LocalReplica<P>& replica_;
  const std::function<void()> fence_;
};

// Owns the replica, too.
template <Persistence P>
class OwningOpenersReplica final : public LocalOpenersReplica<P> {
 public:
  OwningOpenersReplica(std::unique_ptr<LocalReplica<P>> replica,
                       std::function<void()> fence)
      : LocalOpenersReplica<P>(*replica, std::move(fence)),
        owned_(std::move(replica)) {}

 private:
  const std::unique_ptr<LocalReplica<P>> owned_;
};

template <Persistence P>
std::unique_ptr<OpenersReplica> AsOpenersReplica(
    LocalReplica<P>& replica, std::function<void()> fence = {}) {
  return std::make_unique<LocalOpenersReplica<P>>(replica, std::move(fence));
}

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_OPENERS_REPLICA_H_
