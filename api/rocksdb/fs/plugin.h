// SPDX-License-Identifier: Apache-2.0
// plugin: makes `alpheus:` a file system that RocksDB finds by URI.
//
// Callers: in libalpheus_rocksdb.so, linked or preloaded, the library itself
// (preloaded.cc); inside RocksDB's own tree, RocksDB (in_tree/alpheus.mk).
#ifndef ALPHEUS_API_ROCKSDB_FS_PLUGIN_H_
#define ALPHEUS_API_ROCKSDB_FS_PLUGIN_H_

#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/utilities/object_registry.h"

namespace alpheus::wal {

// Returns the file system of a URI, over RocksDB's own; null and a message if
// the URI is invalid. Opens no log.
std::unique_ptr<rocksdb::FileSystem> MakeFileSystem(const std::string& uri,
                                                    std::string* message);

}  // namespace alpheus::wal

// Adds the factory to one of RocksDB's libraries; returns the number added.
// RocksDB's plugin/ folder requires this name and type.
extern "C" int alpheus_register_rocksdb_plugin(rocksdb::ObjectLibrary& library,
                                               const std::string& argument);

#endif  // ALPHEUS_API_ROCKSDB_FS_PLUGIN_H_
