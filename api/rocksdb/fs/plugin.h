// SPDX-License-Identifier: Apache-2.0
// plugin: makes `alpheus:` a file system that RocksDB finds by URI.
//
// Who calls it: in libalpheus_rocksdb.so, which is linked or preloaded, the
// library itself (preloaded.cc); inside RocksDB's own tree, RocksDB
// (in_tree/alpheus.mk).
#ifndef ALPHEUS_API_ROCKSDB_FS_PLUGIN_H_
#define ALPHEUS_API_ROCKSDB_FS_PLUGIN_H_

#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/utilities/object_registry.h"

namespace alpheus {

// What a URI names, on RocksDB's own file system; null and a message if it
// names nothing. Opens no log.
std::unique_ptr<rocksdb::FileSystem> MakeFileSystem(const std::string& uri,
                                                    std::string* message);

}  // namespace alpheus

// Adds the factory to a library of RocksDB's; returns how many it added. Name
// and form are what RocksDB's plugin/ folder asks for.
extern "C" int alpheus_register_rocksdb_plugin(rocksdb::ObjectLibrary& library,
                                               const std::string& argument);

#endif  // ALPHEUS_API_ROCKSDB_FS_PLUGIN_H_
