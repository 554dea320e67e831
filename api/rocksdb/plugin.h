// SPDX-License-Identifier: Apache-2.0
// plugin: makes `alpheus:` a file system that RocksDB finds by URI.
//
// Loading libalpheus_rocksdb.so, by linking or by LD_PRELOAD, is enough.
#ifndef ALPHEUS_API_ROCKSDB_PLUGIN_H_
#define ALPHEUS_API_ROCKSDB_PLUGIN_H_

#include <string>

#include "rocksdb/utilities/object_registry.h"

namespace alpheus {

// Adds the factory to a library of RocksDB's; returns how many it added. Of the
// form that RocksDB's plugin/ folder asks for.
int RegisterWalFileSystem(rocksdb::ObjectLibrary& library,
                          const std::string& argument);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_PLUGIN_H_
