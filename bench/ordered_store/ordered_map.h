// SPDX-License-Identifier: Apache-2.0
// ordered_map: a concurrent B+-tree in memory, from 64-bit keys to records; the
// base of this benchmark's ordered store.
//
// Idea: optimistic lock coupling, like Masstree's trees of one layer. Each node
// has a version. Readers take no lock: they read a node, check that its version
// is unchanged, and continue below it, or start again. Writers lock only the
// nodes that they change. A full node is split on the way down, so that a split
// never moves up.
//
// Invariants:
//   OM1. A node is changed only while its version is odd, by the thread that
//        made it odd; the version rises with each change.
//   OM2. A key is below the child left of the first separator that is greater
//        than or equal to it.
//   OM3. Nodes and records stay in place until the map is destroyed: nothing is
//        ever removed, so an overtaken reader reads old data, never freed
//        memory.
// Thread safety: all members concurrently, except the destructor. Fields of
// nodes are atomic: a value that a writer stored (release) and a reader saw
// (acquire) brings the writer's odd version with it. So the reader's second
// check of the version can't miss the change.
// References: Mao, Kohler, Morris, "Cache craftiness for fast multicore
// key-value storage" (Masstree); Leis and others, "The ART of practical
// synchronization" (optimistic lock coupling).
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

  // Returns the record; null: none.
  Record* Find(uint64_t key) const;
  // Returns the record of that key, a new one if there was none.
  Record* FindOrInsert(uint64_t key);

  // Visits all records in the order of their keys; records inserted meanwhile
  // may be missed.
  void ForEach(const std::function<void(const Record&)>& visit) const;

  // Returns whether keys on each path are in order, and all leaves at one
  // depth. Requires: no other use of the map.
  bool IsSound() const;
  // Returns how often a reader started again.
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
