// SPDX-License-Identifier: Apache-2.0
// store_candidate: read-modify-writes of a store with a log, to be timed as the
// candidates of bench/local are.
//
// All candidates change one store, and all policies of Alpheus append to one
// log: which pages of the machine they get moves times, and would else be taken
// for a difference between them.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_STORE_CANDIDATE_H_
#define ALPHEUS_BENCH_ORDERED_STORE_STORE_CANDIDATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/candidate.h"
#include "bench/ordered_store/commit_log.h"
#include "bench/ordered_store/store.h"

namespace alpheus::bench::ordered_store {

// The keys that each worker asks for, again and again.
using KeysOfWorkers = std::vector<std::vector<uint64_t>>;

class StoreCandidate final : public Candidate {
 public:
  // log: null for none. Store and keys must outlive it.
  StoreCandidate(Store& store, std::shared_ptr<CommitLog> log,
                 const KeysOfWorkers& keys);

  // "unlogged" without a log.
  std::string name() const override;
  absl::StatusOr<BatchResult> Run(int worker, uint64_t ops) override;

  CommitLog* log() { return log_.get(); }
  // One change, and its commit; returns its place. `on_written` is called in
  // between.
  template <class OnWritten>
  absl::StatusOr<uint64_t> Update(int worker, OnWritten on_written) {
    const uint64_t key = NextKey(worker);
    absl::StatusOr<uint64_t> place = store_.Update(worker, key, *log_);
    while (absl::IsResourceExhausted(place.status())) {
      const absl::Status reclaimed = log_->Reclaim();
      if (!reclaimed.ok()) return reclaimed;
      place = store_.Update(worker, key, *log_);
    }
    if (!place.ok()) return place;
    on_written(*place);
    const absl::Status committed =
        WithRoom([&] { return log_->Commit(worker, *place); });
    if (!committed.ok()) return committed;
    return place;
  }
  // Makes all changes durable. Requires: nobody changes anything.
  absl::Status CommitAll() {
    return WithRoom([this] { return log_->CommitAll(); });
  }

 private:
  struct alignas(64) Position {
    uint64_t next = 0;  // in the worker's keys
  };

  uint64_t NextKey(int worker);
  // A log may find itself full when it is to make changes durable.
  template <class Step>
  absl::Status WithRoom(Step step) {
    absl::Status status = step();
    while (absl::IsResourceExhausted(status)) {
      status = log_->Reclaim();
      if (status.ok()) status = step();
    }
    return status;
  }

  Store& store_;
  const std::shared_ptr<CommitLog> log_;
  const KeysOfWorkers& keys_;
  std::vector<Position> positions_;
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_STORE_CANDIDATE_H_
