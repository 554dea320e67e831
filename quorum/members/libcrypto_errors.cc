// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/libcrypto_errors.h"

#include <openssl/err.h>

namespace alpheus::quorum {

ErrorsOfThread::ErrorsOfThread() { ERR_clear_error(); }

ErrorsOfThread::~ErrorsOfThread() { ERR_clear_error(); }

std::string ErrorsOfThread::Text() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "no reason is known" : reason;
}

}  // namespace alpheus::quorum
