// SPDX-License-Identifier: Apache-2.0
// model_shadow: a region that lands in memory, on a modelled medium.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_SUPPORT_FABRICS_MODEL_SHADOW_H_
#define ALPHEUS_TESTS_SUPPORT_FABRICS_MODEL_SHADOW_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/pmem/region.h"
#include "log/pmem/shadow_persistence.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

// Nothing leaves the processor's buffers before a fence, which is less than
// ShadowedMedium promises.
class ModelShadowedMedium final : public ShadowedMedium {
 public:
  explicit ModelShadowedMedium(model::ModelPersistence& model)
      : model_(model) {}

  std::span<std::byte> bytes() override { return model_.region(); }
  void StoreLine(size_t offset, const LineWords& words) override {
    model_.StoreLineNt(model_.region().data() + offset, words);
  }
  void Order() override {}
  bool Fence() override { return model_.Fence(); }
  absl::Status Error() const override { return model_.Error(); }

 private:
  model::ModelPersistence& model_;
};

// A shadow of a modelled medium; it begins with what the medium holds now.
class ShadowedModel {
 public:
  // `model` must outlive it.
  explicit ShadowedModel(model::ModelPersistence& model)
      : memory_(*Region::Anonymous(model.region().size())),
        pmem_(memory_.bytes(), std::make_unique<ModelShadowedMedium>(model)) {
    std::ranges::copy(model.region(), memory_.bytes().begin());
  }

  // The bytes that the node and its peers see.
  std::span<std::byte> bytes() { return memory_.bytes(); }
  ShadowPersistence& pmem() { return pmem_; }

 private:
  Region memory_;
  ShadowPersistence pmem_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_FABRICS_MODEL_SHADOW_H_
