// SPDX-License-Identifier: Apache-2.0
// file_error: the one place that turns errno of file calls into a status.
//
// Idea: an error that this path will always give is InvalidArgument, so that no
// caller retries; a missing file is NotFound; an error that another try may
// avoid is Unavailable.
//
// Thread safety: pure.
#ifndef ALPHEUS_LOG_PMEM_FILE_ERROR_H_
#define ALPHEUS_LOG_PMEM_FILE_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace alpheus {

// Maps an error of a call on an existing file, device or folder, by a process
// that may create it.
absl::Status FileError(const std::string& path, const char* call, int error);

// Maps an error of a reader: the remedy names nothing to create or free.
absl::Status ReadFileError(const std::string& path, const char* call,
                           int error);

// Maps an error of creating a file: what is missing is its folder.
absl::Status NewFileError(const std::string& path, const char* call, int error);

// Maps an error of a call on a file that is no region. `what` names the file
// and the action. `remedy` is a sentence without its full stop, for errors that
// neither another path nor a permission solves; empty: none.
absl::Status OtherFileError(absl::string_view what, int error,
                            absl::string_view remedy = "");

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_ERROR_H_
