// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/interposed.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "api/rocksdb/follow/wal_following_file_system.h"
#include "api/rocksdb/fs/plugin.h"
#include "api/rocksdb/fs/wal_file_system.h"
#include "api/rocksdb/fs/wal_folder_file_system.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/transaction_db.h"

namespace alpheus::wal {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::ColumnFamilyHandle;

// Returns RocksDB's function of that name, which includes the types of its
// arguments.
template <class F>
F Next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

constexpr char kDefault[] = "_ZN7rocksdb3Env7DefaultEv";
constexpr char kOpen[] =
    "_ZN7rocksdb2DB4OpenERKNS_9DBOptionsERKNSt7__cxx1112basic_stringIcSt11char_"
    "traitsIcESaIcEEERKSt6vectorINS_22ColumnFamilyDescriptorESaISD_EEPSC_"
    "IPNS_18ColumnFamilyHandleESaISJ_EEPPS0_";
constexpr char kOpenTransactions[] =
    "_ZN7rocksdb13TransactionDB4OpenERKNS_9DBOptionsERKNS_"
    "20TransactionDBOptionsERKNSt7__cxx1112basic_stringIcSt11char_"
    "traitsIcESaIcEEERKSt6vectorINS_22ColumnFamilyDescriptorESaISG_EEPSF_"
    "IPNS_18ColumnFamilyHandleESaISM_EEPPS0_";

rocksdb::Status OtherRocksDb() {
  return rocksdb::Status::NotSupported(
      "alpheus: this RocksDB opens databases by another function than the one "
      "that libalpheus_rocksdb was built for. Build it with this RocksDB");
}

// ~PosixEnv joins its threads only where it is Env::Default().
std::atomic<bool> is_ending = false;
// True while this thread makes file systems, which stand on RocksDB's own.
thread_local bool is_making = false;

const char* UriOfEnvironment() {
  static const char* const uri = std::getenv("ALPHEUS_ROCKSDB_URI");
  return uri == nullptr || *uri == '\0' ? nullptr : uri;
}

bool IsOnALog(rocksdb::Env* env) {
  if (env == nullptr) return false;
  rocksdb::FileSystem& fs = *env->GetFileSystem();
  return fs.CheckedCast<WalFolderFileSystem>() != nullptr ||
         fs.CheckedCast<WalFileSystem>() != nullptr ||
         fs.CheckedCast<WalFollowingFileSystem>() != nullptr;
}

// Warns the user who set the variable if it has no effect.
void WarnIfUnused(const rocksdb::DBOptions& options, const std::string& name) {
  if (UriOfEnvironment() == nullptr || IsOnALog(options.env)) return;
  std::fprintf(
      stderr,
      "alpheus: %s: is opened with an environment of the program's "
      "own, and not with that of ALPHEUS_ROCKSDB_URI: its WAL is not "
      "in a log. Give the program an alpheus: URI, or Env::Default()\n",
      name.c_str());
}

rocksdb::Env* EnvOfUri(const char* uri) {
  std::string message;
  std::unique_ptr<rocksdb::FileSystem> made = MakeFileSystem(uri, &message);
  if (made == nullptr) {
    // Env::Default can't fail, and a database in the wrong place is worse than
    // none.
    std::fprintf(stderr, "alpheus: ALPHEUS_ROCKSDB_URI: %s\n", message.c_str());
    std::_Exit(EXIT_FAILURE);
  }
  is_making = true;
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
      std::shared_ptr<rocksdb::FileSystem>(std::move(made)));
  is_making = false;
  // Registered after RocksDB's own environment was made, so it runs before that
  // is destroyed.
  std::atexit([] { is_ending = true; });
  // Never freed: databases are closed until the process ends.
  return env.release();
}

}  // namespace

uint64_t MemtableBytes(rocksdb::Env* env, const std::string& database) {
  if (env == nullptr) return 0;
  rocksdb::FileSystem& fs = *env->GetFileSystem();
  // The opening of the database reports why the log can't be opened.
  if (auto* const folder = fs.CheckedCast<WalFolderFileSystem>()) {
    return folder->MemtableBytes(database).value_or(0);
  }
  auto* const of_one = fs.CheckedCast<WalFileSystem>();
  return of_one == nullptr ? 0 : of_one->MemtableBytes().value_or(0);
}

void LimitMemtables(uint64_t bytes, rocksdb::DBOptions& options,
                    std::vector<ColumnFamilyDescriptor>& families) {
  if (bytes == 0 || options.db_write_buffer_size != 0 ||
      options.write_buffer_manager != nullptr) {
    return;
  }
  options.db_write_buffer_size = bytes;
  // Memory is counted in blocks of an arena, of 1 MiB usually.
  constexpr size_t kBlocks = 16;
  constexpr size_t kBlockBytesMin = 4 << 10;
  for (ColumnFamilyDescriptor& family : families) {
    size_t& block = family.options.arena_block_size;
    if (block != 0) continue;
    const size_t of_rocksdb =
        std::min<size_t>(1 << 20, family.options.write_buffer_size / 8);
    block = std::min(of_rocksdb, std::max<size_t>(bytes / kBlocks / 4096 * 4096,
                                                  kBlockBytesMin));
  }
}

}  // namespace alpheus::wal

namespace rocksdb {

Env* Env::Default() {
  static auto* const next =
      alpheus::wal::Next<Env* (*)()>(alpheus::wal::kDefault);
  const char* const uri = alpheus::wal::UriOfEnvironment();
  if (uri == nullptr || alpheus::wal::is_ending || alpheus::wal::is_making)
    return next();
  static Env* const env = alpheus::wal::EnvOfUri(uri);
  return env;
}

Status DB::Open(const DBOptions& db_options, const std::string& name,
                const std::vector<ColumnFamilyDescriptor>& column_families,
                std::vector<ColumnFamilyHandle*>* handles, DB** dbptr) {
  static auto* const next =
      alpheus::wal::Next<Status (*)(const DBOptions&, const std::string&,
                                    const std::vector<ColumnFamilyDescriptor>&,
                                    std::vector<ColumnFamilyHandle*>*, DB**)>(
          alpheus::wal::kOpen);
  if (next == nullptr) return alpheus::wal::OtherRocksDb();
  alpheus::wal::WarnIfUnused(db_options, name);
  DBOptions limited = db_options;
  std::vector<ColumnFamilyDescriptor> limited_families = column_families;
  alpheus::wal::LimitMemtables(
      alpheus::wal::MemtableBytes(db_options.env, name), limited,
      limited_families);
  return next(limited, name, limited_families, handles, dbptr);
}

Status TransactionDB::Open(
    const DBOptions& db_options, const TransactionDBOptions& txn_db_options,
    const std::string& dbname,
    const std::vector<ColumnFamilyDescriptor>& column_families,
    std::vector<ColumnFamilyHandle*>* handles, TransactionDB** dbptr) {
  static auto* const next = alpheus::wal::Next<Status (*)(
      const DBOptions&, const TransactionDBOptions&, const std::string&,
      const std::vector<ColumnFamilyDescriptor>&,
      std::vector<ColumnFamilyHandle*>*, TransactionDB**)>(
      alpheus::wal::kOpenTransactions);
  if (next == nullptr) return alpheus::wal::OtherRocksDb();
  alpheus::wal::WarnIfUnused(db_options, dbname);
  DBOptions limited = db_options;
  std::vector<ColumnFamilyDescriptor> limited_families = column_families;
  alpheus::wal::LimitMemtables(
      alpheus::wal::MemtableBytes(db_options.env, dbname), limited,
      limited_families);
  return next(limited, txn_db_options, dbname, limited_families, handles,
              dbptr);
}

}  // namespace rocksdb
