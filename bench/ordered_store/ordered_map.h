// SPDX-License-Identifier: Apache-2.0
// ordered_map: a concurrent B+-tree in memory, from 64-bit keys to records;
// what the ordered store of this benchmark stands on.
//
// Idea: optimistic lock coupling, as Masstree's trees of one layer. Each node
// has a version; readers take no lock: they read a node, see that its version
// is still the one from before, and go on below it, or begin anew. Writers lock
// only the nodes that they change; a full node is split on the way down, so
// that a split never goes up.
//
// Invariants:
//   OM1. A node is changed only while its version is odd, by who made it odd;
//        the version rises with each change.
//   OM2. A key is below the child left of the first separator that is greater
//        than or equal to it.
//   OM3. Nodes and records stay where they are until the map is destroyed:
//        nothing is ever taken out, so a reader that was overtaken reads what
//        is old, never what is gone.
// Thread safety: all members concurrently, but for the destructor. Fields of
// nodes are atomic: a value that a writer stored (release) and a reader saw
// (acquire) brings the writer's odd version with it, so that the reader's
// second look at the version can't miss the change. References: Mao, Kohler,
// Morris, "Cache craftiness for fast multicore key-value storage" (Masstree);
// Leis and others, "The ART of practical synchronization" (optimistic lock
// coupling).
#ifndef ALPHEUS_BENCH_ORDERED_STORE_ORDERED_MAP_H_
#define ALPHEUS_BENCH_ORDERED_STORE_ORDERED_MAP_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "bench/ordered_store/record.h"

namespace alpheus::bench::ordered_store {

class OrderedMap {
 public:
  OrderedMap();
  ~OrderedMap();
  OrderedMap(const OrderedMap&) = delete;
  OrderedMap& operator=(const OrderedMap&) = delete;

  // Null: there is none.
  Record* Find(uint64_t key) const;
  // The record of that key, a new one if there was none.
  Record* FindOrInsert(uint64_t key);

  // All records in the order of their keys; who is inserted meanwhile may be
  // left out.
  void ForEach(const std::function<void(const Record&)>& visit) const;

  // Keys on each path are in order, and all leaves at one depth. Requires:
  // nobody else uses the map.
  bool IsSound() const;
  // How often a reader began anew.
  uint64_t restarts() const { return restarts_.load(); }

 private:
  struct Node;
  struct Leaf;
  struct Inner;

  Record* TryFind(uint64_t key, bool* overtaken) const;
  Record* TryFindOrInsert(uint64_t key, bool* overtaken);
  void SplitRoot(Node* root);
  static void SplitChild(Inner* parent, Node* child);
  static void Free(Node* node);
  static bool IsSound(const Node* node, uint64_t low, uint64_t high, int depth,
                      int* leaf_depth);

  std::atomic<Node*> root_;
  mutable std::atomic<uint64_t> restarts_{0};
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_ORDERED_MAP_H_
