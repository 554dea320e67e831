// SPDX-License-Identifier: Apache-2.0
// Loading the library is enough. Not a part of RocksDB's own tree, where
// RocksDB registers its plugins.
#include <string>

#include "api/rocksdb/fs/plugin.h"

namespace alpheus {
namespace {

// Before main: RocksDB's tools look URIs up as soon as they have read their
// flags.
[[maybe_unused]] const int kRegistered = alpheus_register_rocksdb_plugin(
    *rocksdb::ObjectLibrary::Default(), std::string());

}  // namespace
}  // namespace alpheus
