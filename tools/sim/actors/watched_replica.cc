// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/watched_replica.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

// The calls that both have.
template <class Interface>
class Watched : public Interface {
 public:
  Watched(World& world, int machine, std::unique_ptr<Interface> inner)
      : world_(world), machine_(machine), inner_(std::move(inner)) {}

  absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& request) override {
    absl::StatusOr<quorum::PromiseVerdict> verdict =
        inner_->AcceptPromise(request);
    if (verdict.ok()) {  // a refusal leaves all as it was
      installing_.reset();
      checker().Promised(machine_, request);
      promised_ = request;
    }
    return verdict;
  }
  absl::Status StartStateReport(bool from_head) override {
    installing_.reset();
    world_.checkers().fence.Promised(machine_, promised_);
    const absl::Status started = inner_->StartStateReport(from_head);
    is_at_work_ = started.ok();
    return started;
  }
  recovery::StateReport TakeStateReport() override {
    recovery::StateReport report = inner_->TakeStateReport();
    is_at_work_ = false;
    checker().Reported(machine_, report);
    return report;
  }
  absl::Status BeginRepair(Epoch epoch) override {
    const absl::Status begun = inner_->BeginRepair(epoch);
    if (begun.ok()) checker().RepairBegan(machine_);
    return begun;
  }
  absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling) override {
    return inner_->RaiseCeiling(epoch, ceiling);
  }
  absl::Status StartInstall(
      const recovery::Installation& installation) override {
    const absl::Status started = inner_->StartInstall(installation);
    if (started.ok()) installing_ = installation.epoch;
    is_at_work_ = started.ok();
    return started;
  }
  absl::StatusOr<bool> Continue(uint64_t bytes_max) override {
    absl::StatusOr<bool> done = inner_->Continue(bytes_max);
    if (!done.ok()) installing_.reset();
    if (!done.ok() || *done) is_at_work_ = false;
    if (done.ok() && *done && installing_) {
      checker().Installed(machine_, *std::exchange(installing_, {}));
    }
    return done;
  }

 protected:
  Interface& inner() { return *inner_; }
  const Interface& inner() const { return *inner_; }
  World& world() { return world_; }
  int machine() const { return machine_; }
  // Somebody opens an epoch, and it is scanned or installs.
  bool is_at_work() const { return is_at_work_; }
  void NoteEndOfWork() { is_at_work_ = false; }

 private:
  StateReportChecker& checker() { return world_.checkers().reports; }

  World& world_;
  const int machine_;
  const std::unique_ptr<Interface> inner_;
  quorum::Promise promised_;  // last
  bool is_at_work_ = false;
  std::optional<Epoch> installing_;
};

class WatchedLog final : public Watched<recovery::ServedLog> {
 public:
  using Watched::Watched;

  Uuid log_id() const override { return inner().log_id(); }
  recovery::ServerHello server_hello() const override {
    return inner().server_hello();
  }
  quorum::Promise current_promise() const override {
    return inner().current_promise();
  }
  recovery::Created created() const override { return inner().created(); }
  recovery::DeletionState deletion() const override {
    return inner().deletion();
  }
  absl::Status MarkDeleted(Deletion deletion) override {
    if (deletion == Deletion::kDecided) {
      world().checkers().deletion.Removes(machine());
    }
    const absl::Status marked = inner().MarkDeleted(deletion);
    if (marked.ok()) world().checkers().deletion.Marks(machine());
    return marked;
  }
  std::span<std::byte> ring() const override { return inner().ring(); }
  std::span<std::byte> ring_on_medium() const override {
    return inner().ring_on_medium();
  }
  std::span<std::byte> region() const override { return inner().region(); }
  recovery::Followed followed() const override { return inner().followed(); }
  bool medium_failed() const override { return inner().medium_failed(); }
  void EndWork() override {
    NoteEndOfWork();
    inner().EndWork();
  }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    return world().checkers().repairs.Watch(
        machine(), Bounds(), offset, bytes,
        [this, offset](std::span<const std::byte> repaired) {
          return inner().RestoreBytes(offset, repaired);
        });
  }
  absl::StatusOr<int> RepairCopies() override {
    ++world().counters().scrubs;
    return inner().RepairCopies();
  }
  absl::Status StartSession(const replication::SessionTerms& terms,
                            fabric::Fabric& fabric,
                            fabric::ConnectionId connection) override {
    return inner().StartSession(terms, fabric, connection);
  }
  absl::Status OnCompletion(const fabric::Completion& completion) override {
    return inner().OnCompletion(completion);
  }
  absl::Status Step() override { return inner().Step(); }
  bool has_more() const override { return inner().has_more(); }
  std::string TakeNews() override { return inner().TakeNews(); }
  absl::Status PersistWatermark() override {
    return inner().PersistWatermark();
  }
  void EndSession() override { inner().EndSession(); }

 private:
  RepairChecker::Bounds Bounds() const {
    const recovery::Followed said = inner().followed();
    RepairChecker::Bounds bounds{said.table, said.head.lsn, said.persisted_lsn,
                                 is_at_work()};
    if (!said.table.entries().empty()) {
      bounds.last =
          std::max(bounds.last, said.table.entries().back().start_lsn - 1);
    }
    return bounds;
  }
};

class WatchedOpenersReplica final : public Watched<recovery::OpenersReplica> {
 public:
  using Watched::Watched;

  const std::string& name() const override { return inner().name(); }
  const Superline& superline() const override { return inner().superline(); }
  Ring ring() const override { return inner().ring(); }
  RingLogStart StartOfLog() override { return inner().StartOfLog(); }
};

}  // namespace

std::unique_ptr<recovery::ServedLog> Watch(
    World& world, int machine, std::unique_ptr<recovery::ServedLog> log) {
  return std::make_unique<WatchedLog>(world, machine, std::move(log));
}

std::unique_ptr<recovery::OpenersReplica> Watch(
    World& world, int machine,
    std::unique_ptr<recovery::OpenersReplica> replica) {
  return std::make_unique<WatchedOpenersReplica>(world, machine,
                                                 std::move(replica));
}

}  // namespace alpheus::sim
