// SPDX-License-Identifier: Apache-2.0
// followed_text: what a follower shows of a file, for tests.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_FOLLOW_FOLLOWED_TEXT_H_
#define ALPHEUS_TESTS_API_ROCKSDB_FOLLOW_FOLLOWED_TEXT_H_

#include <span>
#include <string>

#include "api/rocksdb/follow/wal_follower.h"

namespace alpheus::testing {

inline std::string TextOf(const wal::WalFollower::Followed& followed) {
  if (followed.file == nullptr) return "no such file";
  std::string text(followed.file->size(), '\0');
  text.resize(followed.file->Read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_FOLLOW_FOLLOWED_TEXT_H_
