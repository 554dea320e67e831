// SPDX-License-Identifier: Apache-2.0
// kernel_tls: hands the key of one direction of a TLS session to the kernel.
//
// Idea: with the key, the kernel makes the records of TLS itself. So a send
// takes a program's bytes from where they lie, and a receive puts them where
// they belong: nothing is copied to a buffer of libssl. A kernel without the
// module `tls` (CONFIG_TLS) refuses, and libssl goes on.
//
// Thread safety: none; the owner of the socket calls.
// References: Documentation/networking/tls.rst of Linux; RFC 8446, 5.2 and 7.3.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_KERNEL_TLS_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_KERNEL_TLS_H_

#include <array>
#include <cstddef>

#include "replication/fabric/tcp/socket.h"

namespace alpheus::fabric::tcp {

// For ChaCha20-Poly1305.
struct KernelTlsKey {
  std::array<unsigned char, 32> key;
  std::array<unsigned char, 12> iv;
};

enum class KernelTlsDirection { kSending, kReceiving };

// Returns whether the kernel encrypts, or decrypts, from now on. If not, the
// socket is as before. Requires: the socket is connected, and its next byte of
// that direction is the first of the key's record 0.
bool GiveToKernel(const Descriptor& socket, KernelTlsDirection direction,
                  const KernelTlsKey& key);

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_KERNEL_TLS_H_
