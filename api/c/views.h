// SPDX-License-Identifier: Apache-2.0
// views: structs of plain pointers that the C interface lends, and the C++
// objects behind these pointers.
//
// Thread safety: values that are not copied; immutable once made.
#ifndef ALPHEUS_API_C_VIEWS_H_
#define ALPHEUS_API_C_VIEWS_H_

#include <string>
#include <vector>

#include "alpheus/alpheus.h"
#include "alpheus/log_reader.h"
#include "alpheus/recovery_report.h"

namespace alpheus::c {

alpheus_uuid ViewOf(const Uuid& uuid);

// An array of texts.
class TextsView {
 public:
  explicit TextsView(std::vector<std::string> texts);
  TextsView(const TextsView&) = delete;
  TextsView& operator=(const TextsView&) = delete;

  const char* const* data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }

 private:
  const std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

class ReportView {
 public:
  explicit ReportView(const RecoveryReport& report);
  ReportView(const ReportView&) = delete;
  ReportView& operator=(const ReportView&) = delete;

  const alpheus_recovery_report* get() const { return &view_; }

 private:
  const TextsView repairs_;
  const std::string text_;
  alpheus_recovery_report view_{};
};

class RegionInfoView {
 public:
  explicit RegionInfoView(const RegionInfo& info);
  RegionInfoView(const RegionInfoView&) = delete;
  RegionInfoView& operator=(const RegionInfoView&) = delete;

  const alpheus_region_info* get() const { return &view_; }

 private:
  const std::string path_;
  const TextsView single_faults_;
  std::vector<alpheus_epoch_info> epochs_;
  alpheus_region_info view_{};
};

class VerificationView {
 public:
  explicit VerificationView(const VerifyReport& report);
  VerificationView(const VerificationView&) = delete;
  VerificationView& operator=(const VerificationView&) = delete;

  const alpheus_verification* get() const { return &view_; }

 private:
  const std::string verdict_;
  alpheus_verification view_{};
};

}  // namespace alpheus::c

#endif  // ALPHEUS_API_C_VIEWS_H_
