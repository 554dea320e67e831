// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/ordered_map.h"

#include <immintrin.h>

#include <array>
#include <limits>
#include <memory>
#include <thread>

namespace alpheus::bench::ordered_store {
namespace {

// Masstree's: a node of 15 keys is four lines.
constexpr int kKeysMax = 15;
constexpr int kSpinRounds = 100;

using Version = uint64_t;

bool IsLocked(Version version) { return version % 2 != 0; }

}  // namespace

struct OrderedMap::Node {
  explicit Node(bool is_leaf) : is_leaf(is_leaf) {}

  const bool is_leaf;
  std::atomic<int> count{0};  // of keys
  std::atomic<Version> version{0};
  std::array<std::atomic<uint64_t>, kKeysMax> keys = {};

  bool IsFull() const {
    return count.load(std::memory_order_acquire) == kKeysMax;
  }
  // The first key that is not less. A count that is being changed may be any
  // that was there.
  int LowerBound(uint64_t key) const {
    const int n = count.load(std::memory_order_acquire);
    int i = 0;
    while (i < n && keys[i].load(std::memory_order_acquire) < key) ++i;
    return i;
  }
  uint64_t key(int i) const { return keys[i].load(std::memory_order_acquire); }
  void SetKey(int i, uint64_t key) {
    keys[i].store(key, std::memory_order_release);
  }

  // Waits until nobody changes the node.
  Version Read() const {
    for (int round = 0;; ++round) {
      const Version seen = version.load(std::memory_order_acquire);
      if (!IsLocked(seen)) return seen;
      if (round < kSpinRounds) {
        _mm_pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  bool HasChanged(Version since) const {
    return version.load(std::memory_order_acquire) != since;
  }
  // False: it has changed since.
  bool TryLock(Version since) {
    return version.compare_exchange_strong(
        since, since + 1, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  void Unlock() { version.fetch_add(1, std::memory_order_release); }
};

struct OrderedMap::Leaf : Node {
  Leaf() : Node(/*is_leaf=*/true) {}

  std::array<std::atomic<Record*>, kKeysMax> records = {};
  std::atomic<Leaf*> next{nullptr};

  // Requires: locked, not full, and `place` is the key's.
  void Insert(int place, uint64_t key, Record* record) {
    const int n = count.load(std::memory_order_relaxed);
    for (int i = n; i > place; --i) {
      SetKey(i, this->key(i - 1));
      records[i].store(records[i - 1].load(std::memory_order_relaxed),
                       std::memory_order_release);
    }
    SetKey(place, key);
    records[place].store(record, std::memory_order_release);
    count.store(n + 1, std::memory_order_release);
  }
};

struct OrderedMap::Inner : Node {
  Inner() : Node(/*is_leaf=*/false) {}

  std::array<std::atomic<Node*>, kKeysMax + 1> children = {};

  Node* child(int i) const {
    return children[i].load(std::memory_order_acquire);
  }
  void SetChild(int i, Node* child) {
    children[i].store(child, std::memory_order_release);
  }
  // Requires: locked, and not full.
  void Insert(int place, uint64_t separator, Node* right) {
    const int n = count.load(std::memory_order_relaxed);
    for (int i = n; i > place; --i) {
      SetKey(i, key(i - 1));
      SetChild(i + 1, child(i));
    }
    SetKey(place, separator);
    SetChild(place + 1, right);
    count.store(n + 1, std::memory_order_release);
  }
};

OrderedMap::OrderedMap() : root_(new Leaf) {}

OrderedMap::~OrderedMap() { Free(root_.load(std::memory_order_relaxed)); }

void OrderedMap::Free(Node* node) {
  const int n = node->count.load(std::memory_order_relaxed);
  if (node->is_leaf) {
    const std::unique_ptr<Leaf> leaf(static_cast<Leaf*>(node));
    for (int i = 0; i < n; ++i) delete leaf->records[i].load();
    return;
  }
  const std::unique_ptr<Inner> inner(static_cast<Inner*>(node));
  for (int i = 0; i <= n; ++i) Free(inner->child(i));
}

Record* OrderedMap::Find(uint64_t key) const {
  while (true) {
    bool overtaken = false;
    Record* const found = TryFind(key, &overtaken);
    if (!overtaken) return found;
    restarts_.fetch_add(1, std::memory_order_relaxed);
  }
}

Record* OrderedMap::TryFind(uint64_t key, bool* overtaken) const {
  *overtaken = true;
  Node* node = root_.load(std::memory_order_acquire);
  Version version = node->Read();
  if (node != root_.load(std::memory_order_acquire)) return nullptr;
  while (!node->is_leaf) {
    const auto* const inner = static_cast<const Inner*>(node);
    Node* const child = inner->child(inner->LowerBound(key));
    // Before the child is touched: of a changing node it may be none.
    if (inner->HasChanged(version)) return nullptr;
    const Version of_child = child->Read();
    // It may have been split while its version was waited for.
    if (inner->HasChanged(version)) return nullptr;
    node = child;
    version = of_child;
  }
  const auto* const leaf = static_cast<const Leaf*>(node);
  const int place = leaf->LowerBound(key);
  Record* found = nullptr;
  if (place < leaf->count.load(std::memory_order_acquire) &&
      leaf->key(place) == key) {
    found = leaf->records[place].load(std::memory_order_acquire);
  }
  *overtaken = leaf->HasChanged(version);
  return found;
}

Record* OrderedMap::FindOrInsert(uint64_t key) {
  while (true) {
    bool overtaken = false;
    Record* const found = TryFindOrInsert(key, &overtaken);
    if (!overtaken) return found;
    restarts_.fetch_add(1, std::memory_order_relaxed);
  }
}

Record* OrderedMap::TryFindOrInsert(uint64_t key, bool* overtaken) {
  *overtaken = true;
  Node* node = root_.load(std::memory_order_acquire);
  Version version = node->Read();
  if (node != root_.load(std::memory_order_acquire)) return nullptr;
  if (node->IsFull()) {
    if (!node->TryLock(version)) return nullptr;
    SplitRoot(node);
    node->Unlock();
    return nullptr;
  }
  while (!node->is_leaf) {
    auto* const inner = static_cast<Inner*>(node);
    Node* const child = inner->child(inner->LowerBound(key));
    if (inner->HasChanged(version)) return nullptr;
    const Version of_child = child->Read();
    if (inner->HasChanged(version)) return nullptr;
    if (child->IsFull()) {
      if (!inner->TryLock(version)) return nullptr;
      if (child->TryLock(of_child)) {
        SplitChild(inner, child);
        child->Unlock();
      }
      inner->Unlock();
      return nullptr;
    }
    node = child;
    version = of_child;
  }
  auto* const leaf = static_cast<Leaf*>(node);
  // It was not full at that version.
  if (!leaf->TryLock(version)) return nullptr;
  *overtaken = false;
  const int place = leaf->LowerBound(key);
  Record* record = nullptr;
  if (place < leaf->count.load(std::memory_order_relaxed) &&
      leaf->key(place) == key) {
    record = leaf->records[place].load(std::memory_order_relaxed);
  } else {
    record = new Record(key);
    leaf->Insert(place, key, record);
  }
  leaf->Unlock();
  return record;
}

// Requires: the root is full and locked.
void OrderedMap::SplitRoot(Node* root) {
  auto* const above = new Inner;
  above->SetChild(0, root);
  SplitChild(above, root);
  root_.store(above, std::memory_order_release);
}

// The upper half of the child moves to a new node right of it.
// Requires: both are locked, or the parent nobody knows; the child is full.
void OrderedMap::SplitChild(Inner* parent, Node* child) {
  constexpr int kKept = kKeysMax / 2 + 1;
  const uint64_t separator = child->key(kKept - 1);
  Node* right = nullptr;
  if (child->is_leaf) {
    auto* const left = static_cast<Leaf*>(child);
    auto* const leaf = new Leaf;
    for (int i = kKept; i < kKeysMax; ++i) {
      leaf->SetKey(i - kKept, left->key(i));
      leaf->records[i - kKept].store(left->records[i].load(),
                                     std::memory_order_release);
    }
    leaf->count.store(kKeysMax - kKept, std::memory_order_release);
    leaf->next.store(left->next.load(), std::memory_order_release);
    left->next.store(leaf, std::memory_order_release);
    left->count.store(kKept, std::memory_order_release);
    right = leaf;
  } else {
    // The separator itself moves up.
    auto* const left = static_cast<Inner*>(child);
    auto* const inner = new Inner;
    for (int i = kKept; i < kKeysMax; ++i) {
      inner->SetKey(i - kKept, left->key(i));
    }
    for (int i = kKept; i <= kKeysMax; ++i) {
      inner->SetChild(i - kKept, left->child(i));
    }
    inner->count.store(kKeysMax - kKept, std::memory_order_release);
    left->count.store(kKept - 1, std::memory_order_release);
    right = inner;
  }
  parent->Insert(parent->LowerBound(separator), separator, right);
}

void OrderedMap::ForEach(
    const std::function<void(const Record&)>& visit) const {
  const Node* node = root_.load(std::memory_order_acquire);
  while (!node->is_leaf) node = static_cast<const Inner*>(node)->child(0);
  const auto* leaf = static_cast<const Leaf*>(node);
  while (leaf != nullptr) {
    std::array<const Record*, kKeysMax> records = {};
    int count = 0;
    const Leaf* next = nullptr;
    Version version = 0;
    do {
      version = leaf->Read();
      count = leaf->count.load(std::memory_order_acquire);
      for (int i = 0; i < count; ++i) {
        records[i] = leaf->records[i].load(std::memory_order_acquire);
      }
      next = leaf->next.load(std::memory_order_acquire);
    } while (leaf->HasChanged(version));
    for (int i = 0; i < count; ++i) visit(*records[i]);
    leaf = next;
  }
}

bool OrderedMap::IsSound() const {
  int leaf_depth = -1;
  return IsSound(root_.load(), 0, std::numeric_limits<uint64_t>::max(), 0,
                 &leaf_depth);
}

// Keys are at least `low` and at most `high`.
bool OrderedMap::IsSound(const Node* node, uint64_t low, uint64_t high,
                         int depth, int* leaf_depth) {
  const int n = node->count.load();
  if (IsLocked(node->version.load())) return false;
  for (int i = 0; i < n; ++i) {
    const uint64_t key = node->key(i);
    if (key < low || key > high) return false;
    if (i > 0 && node->key(i - 1) >= key) return false;
  }
  if (node->is_leaf) {
    if (*leaf_depth == -1) *leaf_depth = depth;
    const auto* const leaf = static_cast<const Leaf*>(node);
    for (int i = 0; i < n; ++i) {
      if (leaf->records[i].load()->key != leaf->key(i)) return false;
    }
    return *leaf_depth == depth;
  }
  const auto* const inner = static_cast<const Inner*>(node);
  for (int i = 0; i <= n; ++i) {
    // OM2: keys left of a separator are at most equal to it.
    const uint64_t from = i == 0 ? low : node->key(i - 1) + 1;
    const uint64_t to = i == n ? high : node->key(i);
    if (!IsSound(inner->child(i), from, to, depth + 1, leaf_depth)) {
      return false;
    }
  }
  return true;
}

}  // namespace alpheus::bench::ordered_store
