// SPDX-License-Identifier: Apache-2.0
// file_error: the one place where errno of file calls becomes a status.
//
// Idea: what can never be right with this path is InvalidArgument, so that
// nobody tries it again; what is not there NotFound; what another try may
// change is Unavailable.
//
// Thread safety: pure.
#ifndef ALPHEUS_LOG_PMEM_FILE_ERROR_H_
#define ALPHEUS_LOG_PMEM_FILE_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace alpheus {

// Of a call on a file, a device or a folder that should be there, by somebody
// who may make it.
absl::Status FileError(const std::string& path, const char* call, int error);

// The same of somebody who only reads: nothing is to be made or freed.
absl::Status ReadFileError(const std::string& path, const char* call,
                           int error);

// Of a call that makes a file: what is not there is its folder.
absl::Status NewFileError(const std::string& path, const char* call, int error);

// Of a call on a file that is no region: `what` says which, and what could not
// be done. `remedy`: a sentence without its full stop, for what neither another
// path mends nor a right; empty: none.
absl::Status OtherFileError(absl::string_view what, int error,
                            absl::string_view remedy = "");

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_ERROR_H_
