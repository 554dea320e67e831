// SPDX-License-Identifier: Apache-2.0
// stress_database: a RocksDB with several column families, as one opening of
// the stress test has it, and the comparison of what it holds with the models.
//
// Thread safety: the database as RocksDB's; Open, Verify and Close by one
// thread.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_ROUNDS_STRESS_DATABASE_H_
#define ALPHEUS_TESTS_API_ROCKSDB_ROUNDS_STRESS_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "tests/api/rocksdb/rounds/stress_model.h"

namespace alpheus::testing {

// The known bounds of a thread's batches.
struct StressBounds {
  uint64_t synced = 0;  // told to be durable
  uint64_t tried = 0;
};

class StressDatabase {
 public:
  // Options that are drawn again for each opening: whatever changes how the WAL
  // is written.
  static rocksdb::Options DrawOptions(uint64_t seed);

  ~StressDatabase() { Close(); }

  rocksdb::Status Open(const rocksdb::Options& options,
                       const std::string& path);
  void Close();

  // Each thread's batches are there up to a number within its bounds, with all
  // that they did and nothing else. Returns a model of each; none: it is not
  // so, and standard error says what.
  std::vector<StressModel> Verify(uint64_t seed,
                                  const std::vector<StressBounds>& bounds);
  // The keys of a thread are those of the model.
  bool IsAsIn(const StressModel& model, int thread,
              const rocksdb::Snapshot* snapshot);

  rocksdb::Status Write(const std::vector<StressWrite>& writes, bool sync);
  rocksdb::DB& db() { return *db_; }
  rocksdb::ColumnFamilyHandle* family(size_t index) { return handles_[index]; }

 private:
  bool HasNoOthers(int threads);

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_ROUNDS_STRESS_DATABASE_H_
