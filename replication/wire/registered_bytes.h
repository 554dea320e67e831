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

namespace alpheus {

class RegisteredBytes {
 public:
  // Registers `bytes`. The fabric and the bytes must outlive the object.
  // Errors: as Fabric::Register.
  static absl::StatusOr<std::unique_ptr<RegisteredBytes>> Make(
      Fabric& fabric, std::span<std::byte> bytes, RemoteAccess access) {
    ALPHEUS_ASSIGN_OR_RETURN(const RegionKey key,
                             fabric.Register(bytes, access));
    return std::unique_ptr<RegisteredBytes>(
        new RegisteredBytes(fabric, bytes, key));
  }
  ~RegisteredBytes() { fabric_.Deregister(key_).IgnoreError(); }
  RegisteredBytes(const RegisteredBytes&) = delete;
  RegisteredBytes& operator=(const RegisteredBytes&) = delete;

  RegionKey key() const { return key_; }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  RegisteredBytes(Fabric& fabric, std::span<std::byte> bytes, RegionKey key)
      : fabric_(fabric), bytes_(bytes), key_(key) {}

  Fabric& fabric_;
  const std::span<std::byte> bytes_;
  const RegionKey key_;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_WIRE_REGISTERED_BYTES_H_
