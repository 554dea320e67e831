// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/plugin.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "api/rocksdb/follow/wal_following_file_system.h"
#include "api/rocksdb/fs/wal_file_system.h"
#include "api/rocksdb/fs/wal_folder_file_system.h"
#include "api/rocksdb/store/wal_options.h"
#include "rocksdb/file_system.h"

namespace alpheus::wal {

std::unique_ptr<rocksdb::FileSystem> MakeFileSystem(const std::string& uri,
                                                    std::string* message) {
  absl::StatusOr<WalOptions> options = ParseWalUri(uri);
  if (!options.ok()) {
    *message = std::string(options.status().message());
    return nullptr;
  }
  const std::shared_ptr<rocksdb::FileSystem> base =
      rocksdb::FileSystem::Default();
  if (options->is_folder) {
    return std::make_unique<WalFolderFileSystem>(*std::move(options), base);
  }
  if (options->follow) {
    return std::make_unique<WalFollowingFileSystem>(*std::move(options), base);
  }
  return std::make_unique<WalFileSystem>(*std::move(options), base);
}

}  // namespace alpheus::wal

int alpheus_register_rocksdb_plugin(rocksdb::ObjectLibrary& library,
                                    const std::string& /*argument*/) {
  library.AddFactory<rocksdb::FileSystem>(
      rocksdb::ObjectLibrary::PatternEntry("alpheus", false).AddSeparator(":"),
      [](const std::string& uri, std::unique_ptr<rocksdb::FileSystem>* guard,
         std::string* message) {
        *guard = alpheus::wal::MakeFileSystem(uri, message);
        return guard->get();
      });
  return 1;
}
