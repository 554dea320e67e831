// SPDX-License-Identifier: Apache-2.0
#include "api/c/result.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace alpheus::c {
namespace {

static_assert(ALPHEUS_OK == static_cast<int>(absl::StatusCode::kOk));
static_assert(ALPHEUS_CANCELLED ==
              static_cast<int>(absl::StatusCode::kCancelled));
static_assert(ALPHEUS_INVALID_ARGUMENT ==
              static_cast<int>(absl::StatusCode::kInvalidArgument));
static_assert(ALPHEUS_DEADLINE_EXCEEDED ==
              static_cast<int>(absl::StatusCode::kDeadlineExceeded));
static_assert(ALPHEUS_NOT_FOUND ==
              static_cast<int>(absl::StatusCode::kNotFound));
static_assert(ALPHEUS_ALREADY_EXISTS ==
              static_cast<int>(absl::StatusCode::kAlreadyExists));
static_assert(ALPHEUS_PERMISSION_DENIED ==
              static_cast<int>(absl::StatusCode::kPermissionDenied));
static_assert(ALPHEUS_RESOURCE_EXHAUSTED ==
              static_cast<int>(absl::StatusCode::kResourceExhausted));
static_assert(ALPHEUS_FAILED_PRECONDITION ==
              static_cast<int>(absl::StatusCode::kFailedPrecondition));
static_assert(ALPHEUS_ABORTED == static_cast<int>(absl::StatusCode::kAborted));
static_assert(ALPHEUS_OUT_OF_RANGE ==
              static_cast<int>(absl::StatusCode::kOutOfRange));
static_assert(ALPHEUS_UNIMPLEMENTED ==
              static_cast<int>(absl::StatusCode::kUnimplemented));
static_assert(ALPHEUS_UNAVAILABLE ==
              static_cast<int>(absl::StatusCode::kUnavailable));
static_assert(ALPHEUS_DATA_LOSS ==
              static_cast<int>(absl::StatusCode::kDataLoss));
// The version is in CMakeLists.txt, and in the header for its users.
static_assert(std::string_view(ALPHEUS_VERSION_STRING) ==
              ALPHEUS_PROJECT_VERSION);
// Convention 11 (alpheus.h): never changes.
static_assert(sizeof(alpheus_error) == 1024);

// Copies all of `text`, or its two ends: the start names the place, the end the
// remedy.
void SetMessage(std::string_view text, char (&message)[ALPHEUS_MESSAGE_BYTES]) {
  constexpr std::string_view kGap = " ... ";
  constexpr size_t kRoom = ALPHEUS_MESSAGE_BYTES - 1;
  constexpr size_t kHead = (kRoom - kGap.size()) / 2;
  constexpr size_t kTail = kRoom - kGap.size() - kHead;
  char* to = message;
  if (text.size() <= kRoom) {
    to = std::copy(text.begin(), text.end(), to);
  } else {
    to = std::copy_n(text.begin(), kHead, to);
    to = std::copy(kGap.begin(), kGap.end(), to);
    to = std::copy(text.end() - kTail, text.end(), to);
  }
  *to = '\0';
}

}  // namespace

alpheus_code Return(const absl::Status& status, alpheus_error* error) {
  if (status.ok()) return ReturnOk(error);
  const auto code = static_cast<alpheus_code>(status.code());
  if (error != nullptr) {
    error->code = code;
    const auto text = status.message();
    SetMessage({text.data(), text.size()}, error->message);
  }
  return code;
}

alpheus_code ReturnOk(alpheus_error* error) {
  if (error != nullptr) {
    error->code = ALPHEUS_OK;
    error->message[0] = '\0';
  }
  return ALPHEUS_OK;
}

alpheus_code ReturnNull(const char* function, const char* argument,
                        alpheus_error* error) {
  return Return(absl::InvalidArgumentError(
                    absl::StrCat(function, ": `", argument, "` is NULL")),
                error);
}

absl::Status CheckData(const char* function, const void* data, size_t size) {
  if (data != nullptr || size == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(function, ": the data is NULL, yet its size is ", size));
}

}  // namespace alpheus::c

extern "C" {

const char* alpheus_version_string() noexcept { return ALPHEUS_VERSION_STRING; }

int alpheus_version() noexcept { return ALPHEUS_VERSION; }

const char* alpheus_code_name(int code) noexcept {
  switch (code) {
    case ALPHEUS_OK:
      return "OK";
    case ALPHEUS_CANCELLED:
      return "CANCELLED";
    case ALPHEUS_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case ALPHEUS_DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case ALPHEUS_NOT_FOUND:
      return "NOT_FOUND";
    case ALPHEUS_ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case ALPHEUS_PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case ALPHEUS_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case ALPHEUS_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case ALPHEUS_ABORTED:
      return "ABORTED";
    case ALPHEUS_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case ALPHEUS_UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case ALPHEUS_UNAVAILABLE:
      return "UNAVAILABLE";
    case ALPHEUS_DATA_LOSS:
      return "DATA_LOSS";
    default:
      return "UNKNOWN";
  }
}

bool alpheus_is_outcome_unknown(int code) noexcept {
  return code != ALPHEUS_OK && code != ALPHEUS_INVALID_ARGUMENT &&
         code != ALPHEUS_OUT_OF_RANGE && code != ALPHEUS_FAILED_PRECONDITION &&
         code != ALPHEUS_RESOURCE_EXHAUSTED;
}

}  // extern "C"
