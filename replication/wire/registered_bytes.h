// SPDX-License-Identifier: Apache-2.0
// registered_bytes: a registration of the caller's memory with a fabric, for
// the lifetime of the object.
//
// Thread safety: one thread.
#ifndef ALPHEUS_REPLICATION_WIRE_REGISTERED_BYTES_H_
#define ALPHEUS_REPLICATION_WIRE_REGISTERED_BYTES_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "log/base/status_macros.h"
#include "replication/fabric/fabric.h"

namespace alpheus::replication {

class RegisteredBytes {
 public:
  // Registers `bytes`. The fabric and the bytes must outlive the object.
  // Errors: as Fabric::Register.
  static absl::StatusOr<std::unique_ptr<RegisteredBytes>> Make(
      fabric::Fabric& fabric, std::span<std::byte> bytes,
      fabric::RemoteAccess access) {
    ALPHEUS_ASSIGN_OR_RETURN(const fabric::RegionKey key,
                             fabric.Register(bytes, access));
    return std::unique_ptr<RegisteredBytes>(
        new RegisteredBytes(fabric, bytes, key));
  }
  ~RegisteredBytes() { fabric_.Deregister(key_).IgnoreError(); }
  RegisteredBytes(const RegisteredBytes&) = delete;
  RegisteredBytes& operator=(const RegisteredBytes&) = delete;

  fabric::RegionKey key() const { return key_; }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  RegisteredBytes(fabric::Fabric& fabric, std::span<std::byte> bytes,
                  fabric::RegionKey key)
      : fabric_(fabric), bytes_(bytes), key_(key) {}

  fabric::Fabric& fabric_;
  const std::span<std::byte> bytes_;
  const fabric::RegionKey key_;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_WIRE_REGISTERED_BYTES_H_
