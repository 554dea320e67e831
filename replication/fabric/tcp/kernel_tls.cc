// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/kernel_tls.h"

#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace alpheus::fabric::tcp {
namespace {

#ifndef SOL_TLS
constexpr int SOL_TLS = 282;
#endif

// The module is attached once, for both directions.
bool HasModule(const Descriptor& socket) {
  constexpr char kName[] = "tls";
  return setsockopt(socket.get(), IPPROTO_TCP, TCP_ULP, kName, sizeof(kName)) ==
             0 ||
         errno == EEXIST;
}

}  // namespace

bool GiveToKernel(const Descriptor& socket, KernelTlsDirection direction,
                  const KernelTlsKey& key) {
  if (!HasModule(socket)) return false;
  tls12_crypto_info_chacha20_poly1305 info{};
  info.info.version = TLS_1_3_VERSION;
  info.info.cipher_type = TLS_CIPHER_CHACHA20_POLY1305;
  std::ranges::copy(key.key, info.key);
  std::ranges::copy(key.iv, info.iv);
  const int option =
      direction == KernelTlsDirection::kSending ? TLS_TX : TLS_RX;
  const bool is_taken =
      setsockopt(socket.get(), SOL_TLS, option, &info, sizeof(info)) == 0;
  explicit_bzero(&info, sizeof(info));
  return is_taken;
}

}  // namespace alpheus::fabric::tcp
