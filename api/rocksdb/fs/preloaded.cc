// SPDX-License-Identifier: Apache-2.0
// Registers the plugin when the library is loaded. Not part of RocksDB's own
// tree, where RocksDB registers its plugins.
#include <string>

#include "api/rocksdb/fs/plugin.h"

namespace alpheus::wal {
namespace {

// Before main: RocksDB's tools resolve URIs as soon as they have read their
// flags.
[[maybe_unused]] const int kRegistered = alpheus_register_rocksdb_plugin(
    *rocksdb::ObjectLibrary::Default(), std::string());

}  // namespace
}  // namespace alpheus::wal
