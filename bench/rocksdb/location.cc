// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/location.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "api/rocksdb/fs/wal_file_system.h"
#include "api/rocksdb/store/wal_options.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/rocksdb/flex_file_system.h"
#include "bench/rocksdb/flex_store.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

OpenedPlace PlaceOf(const std::shared_ptr<rocksdb::FileSystem>& files) {
  OpenedPlace opened;
  opened.env = rocksdb::NewCompositeEnv(files);
  opened.place.env = opened.env.get();
  return opened;
}

OpenedPlace AlpheusPlace(alpheus::wal::WalOptions options) {
  return PlaceOf(std::make_shared<alpheus::wal::WalFileSystem>(
      std::move(options), rocksdb::FileSystem::Default()));
}

}  // namespace

absl::StatusOr<OpenedPlace> OpenPlace(const Location& location) {
  if (location.kind == kDefaultKind) {
    return OpenedPlace{.env = nullptr,
                       .place = {.env = rocksdb::Env::Default(),
                                 .wal_directory = location.folder}};
  }
  if (location.kind == kFlexKind) {
    ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<FlexStore> store,
                             FlexStore::Open(FlexRegionIn(location.folder)));
    return PlaceOf(std::make_shared<FlexFileSystem>(std::move(store)));
  }
  alpheus::wal::WalOptions options;
  // Memtables are flushed as with the other places.
  options.memtable_bytes = 0;
  if (location.kind == kAlpheusKind) {
    options.log.path = location.folder + "/wal";
    options.create_bytes = location.region_bytes;
    return AlpheusPlace(std::move(options));
  }
  if (location.kind == kClusterKind) {
    options.log = replicated::LogOptionsIn(location.folder, {},
                                           replicated::Waiting::kSpin);
    return AlpheusPlace(std::move(options));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no WAL is of the kind ", location.kind));
}

std::string FlexRegionIn(const std::string& folder) {
  return folder + "/region";
}

}  // namespace alpheus::bench::wal
