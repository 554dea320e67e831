// SPDX-License-Identifier: Apache-2.0
// fabric_pair: two adapters of this machine and the server's memory, for
// FabricTransport.
//
// Thread safety: none.
#ifndef ALPHEUS_BENCH_REMOTELOG_FABRIC_PAIR_H_
#define ALPHEUS_BENCH_REMOTELOG_FABRIC_PAIR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/remotelog/fabric_transport.h"
#include "log/base/random.h"
#include "log/pmem/region.h"
#include "replication/fabric/fabric.h"

namespace alpheus::bench::remotelog {

class FabricPair {
 public:
  // Makes a pair over sockets of this machine. `memory`: a device-DAX, or a
  // file of persistent memory, whose content is lost; empty: memory of this
  // process, which is not persistent.
  // Errors: those of Region::OpenForWriting; FailedPrecondition (the memory is
  // no persistent memory, or too small).
  static absl::StatusOr<std::unique_ptr<FabricPair>> OverTcp(
      const std::string& memory);
  // Makes a pair over the first two of RdmaHosts(). Errors: also Unavailable
  // (fewer than two, or no adapter).
  static absl::StatusOr<std::unique_ptr<FabricPair>> OverVerbs(
      const std::string& memory);

  // Returns the ends, with `warm_up` appends that don't count.
  FabricTransport::Ends Ends(uint64_t warm_up);

 private:
  FabricPair(Region region, std::string listen_address)
      : region_(std::move(region)),
        listen_address_(std::move(listen_address)) {}

  EntropyRandom random_;
  Region region_;
  const std::string listen_address_;
  std::unique_ptr<fabric::Fabric> client_;
  std::unique_ptr<fabric::Fabric> server_;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_FABRIC_PAIR_H_
