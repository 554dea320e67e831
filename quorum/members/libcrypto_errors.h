// SPDX-License-Identifier: Apache-2.0
// libcrypto_errors: the errors that libcrypto keeps for each thread.
//
// Thread safety: the errors are the calling thread's own.
// References: ERR_get_error(3).
#ifndef ALPHEUS_QUORUM_MEMBERS_LIBCRYPTO_ERRORS_H_
#define ALPHEUS_QUORUM_MEMBERS_LIBCRYPTO_ERRORS_H_

#include <string>

namespace alpheus::quorum {

// While it lives, the thread's errors are those of the calls made meanwhile.
// None is left when it ends, where others would find it.
class ErrorsOfThread {
 public:
  ErrorsOfThread();
  ~ErrorsOfThread();
  ErrorsOfThread(const ErrorsOfThread&) = delete;
  ErrorsOfThread& operator=(const ErrorsOfThread&) = delete;

  // Returns the reason of the last error, for messages; "no reason is known":
  // there is none, or it has no text.
  static std::string Text();
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_LIBCRYPTO_ERRORS_H_
