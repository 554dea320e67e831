// SPDX-License-Identifier: Apache-2.0
// alpheus.h as a C++ program sees it: alone, first, and beside the C++ headers.
#include "alpheus/alpheus.h"
//
#include <gtest/gtest.h>

#include <type_traits>

#include "alpheus/log.h"

namespace alpheus::c {
namespace {

static_assert(noexcept(alpheus_version()));
static_assert(std::is_trivial_v<alpheus_error>);
static_assert(std::is_standard_layout_v<alpheus_log_options>);

TEST(CHeaderTest, OptionsAreInitialisedInCxxToo) {
  const alpheus_log_options log = ALPHEUS_LOG_OPTIONS_INIT;
  const alpheus_format_options format = ALPHEUS_FORMAT_OPTIONS_INIT;
  const alpheus_force_options force = ALPHEUS_FORCE_OPTIONS_INIT;
  EXPECT_EQ(log.size, sizeof(log));
  EXPECT_EQ(format.size, sizeof(format));
  EXPECT_EQ(force.size, sizeof(force));
}

// The regions of one are those of the other.
TEST(CHeaderTest, BothInterfacesAreOfOneLibrary) {
  alpheus_error error;
  alpheus_log* c_log = nullptr;
  ASSERT_EQ(alpheus_log_open(nullptr, &c_log, &error), ALPHEUS_OK)
      << error.message;
  const auto log = Log::Open({});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(alpheus_log_payload_bytes_max(c_log), (*log)->payload_bytes_max());
  EXPECT_EQ(alpheus_log_close(c_log, &error), ALPHEUS_OK) << error.message;
}

}  // namespace
}  // namespace alpheus::c
