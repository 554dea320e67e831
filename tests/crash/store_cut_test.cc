// SPDX-License-Identifier: Apache-2.0
// A store on modelled memory whose power is cut at fences and yield points, and
// between its steps, cleaning included: what the cut leaves is the store as it
// was after some request, and after each that was answered. So no put that was
// answered is lost, no torn one shows, no deleted key comes back, and no
// request is there in part.
//
// A longer run: ALPHEUS_STORE_CUT_STEPS=10000 ./store_cut_test; ALPHEUS_SEED
// sets the seed of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/store/engine/cleaner.h"
#include "api/store/engine/engine.h"
#include "api/store/engine/room.h"
#include "log/base/bytes.h"
#include "log/base/mix.h"
#include "log/base/random.h"
#include "tests/crash/modelled_object_log.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {
namespace {

using model::ModelPersistence;
using store::Cleaner;
using store::Engine;
using store::Operation;
using store::Outcome;
using Objects = std::map<std::string, std::string>;

uint64_t EnvironmentOr(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// A log that was opened, and the store on it.
class OpenStore {
 public:
  explicit OpenStore(LogHarness& harness) : log_(harness) {
    auto engine = Engine::Recover(
        log_,
        {.allocate =
             [this](size_t bytes) -> absl::StatusOr<std::span<std::byte>> {
          memory_.push_back(std::make_unique<std::byte[]>(bytes + kLineBytes));
          std::byte* at = memory_.back().get();
          at += (kLineBytes - reinterpret_cast<uintptr_t>(at) % kLineBytes) %
                kLineBytes;
          return std::span(at, bytes);
        }});
    status_ = engine.status();
    if (!engine.ok()) return;
    engine_ = *std::move(engine);
    // Steps are small, so that there are many.
    cleaner_ = std::make_unique<Cleaner>(
        log_, *engine_,
        Cleaner::Options{
            .begin_percent = 40, .end_percent = 30, .step_bytes = 2'048});
  }

  const absl::Status& status() const { return status_; }
  ModelledObjectLog& log() { return log_; }
  Engine& engine() { return *engine_; }
  Cleaner& cleaner() { return *cleaner_; }
  Objects All() const {
    Objects all;
    for (std::optional<uint64_t> cursor = 0; cursor;) {
      cursor = engine_->Scan(*cursor, [&](auto key, const auto& found) {
        all.emplace(AsText(key), AsText(found.value));
      });
    }
    return all;
  }

 private:
  ModelledObjectLog log_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  absl::Status status_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Cleaner> cleaner_;
};

class StoreCutTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  StoreCutTest() { Open(); }

  void Open() {
    store_.reset();
    ASSERT_TRUE(harness_.Open().ok());
    store_.emplace(harness_);
    ASSERT_TRUE(store_->status().ok()) << store_->status();
  }

  // One request of some operations, and what the store then has.
  void Submit() {
    std::vector<Operation> operations;
    Objects after = states_.back().objects;
    texts_.clear();
    const uint64_t first_key = random_.Below(60);
    for (uint64_t i = 0; i <= random_.Below(3); ++i) {
      const std::string& key = Keep(absl::StrCat("key ", first_key + i));
      if (random_.Below(3) == 0) {
        operations.push_back(
            {.kind = Operation::Kind::kDelete, .key = AsBytes(key)});
        after.erase(key);
      } else {
        const std::string& value = Keep(std::string(random_.Below(2'500), 'a') +
                                        absl::StrCat(random_.Next()));
        operations.push_back(
            {Operation::Kind::kPut, AsBytes(key), AsBytes(value)});
        after[key] = value;
      }
    }
    const auto is_answered = std::make_shared<bool>(false);
    states_.push_back({std::move(after), is_answered});
    store_->engine().Submit(
        operations, [this, is_answered](const absl::Status& status,
                                        const std::vector<Outcome>&) {
          EXPECT_TRUE(status.ok()) << status;
          *is_answered = true;
          // One that deletes nothing may be answered before those before it.
          while (states_.size() > 1 && *states_[1].is_answered) {
            states_.pop_front();
          }
        });
    store_->engine().Append();
  }
  const std::string& Keep(std::string text) {
    return texts_.emplace_back(std::move(text));
  }

  void Step() {
    const uint64_t choice = random_.Below(8);
    if (choice < 3) Submit();
    if (choice == 3) {
      ASSERT_TRUE(store_->log().ForceAll().ok());
    }
    if (choice == 4) store_->engine().Poll();
    if (choice > 4) {
      const absl::StatusOr<bool> any = store_->cleaner().Poll();
      ASSERT_TRUE(any.ok()) << any.status();
      if (*any) {
        ++cleaner_steps_;
        store_->engine().Append();
      }
    }
    if (random_.Below(2) == 0) Cut("between steps");
  }

  // Checks some of the images that a power cut here may leave.
  void Cut(const char* where) {
    if (HasFailure()) return;
    ++cuts_;
    Check(harness_.pmem().CutKeepingNone(), where);
    Check(harness_.pmem().CutKeepingAll(), where);
    Check(harness_.pmem().CutDrawing(random_), where);
  }
  void Check(const std::vector<std::byte>& image, const char* where) {
    after_cut_.pmem().Reset(image);
    const absl::Status opened = after_cut_.Open();
    ASSERT_TRUE(opened.ok()) << opened << ", power cut at: " << where;
    OpenStore store(after_cut_);
    ASSERT_TRUE(store.status().ok())
        << store.status() << ", power cut at: " << where;
    ExpectSome(store.All(), where);
  }
  void ExpectSome(const Objects& objects, const char* where) {
    if (std::ranges::find(states_, objects, &State::objects) != states_.end()) {
      return;
    }
    std::string differs;
    const Objects& expected = states_.front().objects;
    for (const auto& [key, value] : expected) {
      const auto found = objects.find(key);
      if (found == objects.end()) absl::StrAppend(&differs, key, " is not; ");
      if (found != objects.end() && found->second != value) {
        absl::StrAppend(&differs, key, " is other; ");
      }
    }
    for (const auto& [key, value] : objects) {
      if (!expected.contains(key)) {
        absl::StrAppend(&differs, key, " is there; ");
      }
    }
    ADD_FAILURE() << "power cut at: " << where << ", cut " << cuts_
                  << ": no request left the store so. After the last answer: "
                  << differs << states_.size() - 1 << " requests wait";
  }

  // The power is cut, and the store goes on with what is left.
  void GoOnAfterCut() {
    const std::vector<std::byte> image = harness_.pmem().CutDrawing(random_);
    store_.reset();
    harness_.Drop();
    harness_.pmem().Reset(image);
    Open();
    const Objects objects = store_->All();
    ExpectSome(objects, "the end of a part");
    states_.clear();
    states_.push_back({objects, nullptr});
  }

  // The state after a request.
  struct State {
    Objects objects;
    std::shared_ptr<const bool> is_answered;
  };

  const uint64_t seed_ = Mix(EnvironmentOr("ALPHEUS_SEED", 1), GetParam());
  Random random_{seed_};
  static constexpr LogHarness::Options kLog{.ring_capacity =
                                                store::Room::kRingBytesMin};
  LogHarness harness_{kLog};
  LogHarness after_cut_{kLog};
  std::optional<OpenStore> store_;
  // After the last request up to which all are answered, and each after it.
  std::deque<State> states_{std::deque<State>(1)};
  std::deque<std::string> texts_;
  int cuts_ = 0;
  int cleaner_steps_ = 0;
};

TEST_P(StoreCutTest, WhatAnyCutLeavesIsTheStoreAfterARequest) {
  SCOPED_TRACE(absl::StrCat("seed ", EnvironmentOr("ALPHEUS_SEED", 1)));
  const uint64_t steps = EnvironmentOr("ALPHEUS_STORE_CUT_STEPS", 2'500);
  for (uint64_t i = 0; i < steps && !HasFailure(); ++i) {
    harness_.pmem().SetHook([&](const ModelPersistence::Event& event) {
      using Primitive = ModelPersistence::Primitive;
      if (event.primitive != Primitive::kFence &&
          event.primitive != Primitive::kYieldPoint) {
        return;
      }
      if (random_.Below(8) == 0) Cut(event.name);
    });
    Step();
    harness_.pmem().SetHook({});
    if (random_.Below(100) == 0) GoOnAfterCut();
  }
  std::printf("[   counts ] cuts %d, steps of the cleaner %d, last LSN %lu\n",
              cuts_, cleaner_steps_,
              static_cast<unsigned long>(harness_.log().next_lsn().value - 1));
  EXPECT_GT(cleaner_steps_, 100);
  EXPECT_GT(harness_.log().head().offset.value, 2 * store::Room::kRingBytesMin);
}

INSTANTIATE_TEST_SUITE_P(Parts, StoreCutTest, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace alpheus::testing
