// SPDX-License-Identifier: Apache-2.0
// large_pages: a folder whose files are mapped by pages of 2 MiB.
//
// Idea: DAX maps persistent memory by pages of 2 MiB, tmpfs by pages of 4 KiB.
// A process that ends, or closes a file, takes as long as it has pages mapped:
// a gigabyte of small pages takes some 100 ms, of large ones less than one. A
// benchmark in which processes end measures that, and not its log. Linux makes
// a tmpfs with large pages; a mount of its own shows it to this process alone
// and to those that it starts.
#ifndef ALPHEUS_BENCH_HARNESS_LARGE_PAGES_H_
#define ALPHEUS_BENCH_HARNESS_LARGE_PAGES_H_

#include <string>

#include "absl/status/status.h"

namespace alpheus::bench {

// Mounts an empty tmpfs with large pages on a folder, in name spaces of this
// process and of those that it starts from now on. It ends with them. Needs no
// root where the kernel lets users make name spaces. Requires: this process has
// one thread. Errors: FailedPrecondition (the folder is on no tmpfs; maybe on
// DAX); Unavailable (system error). After an error the folder is what it was.
absl::Status MountLargePages(const std::string& folder);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_LARGE_PAGES_H_
