// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/cutting_proxy.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::testing {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<CuttingProxy>> CuttingProxy::Start(
    const std::string& target) {
  ALPHEUS_ASSIGN_OR_RETURN(tcp::Listener listener,
                           tcp::ListenOn("127.0.0.1:0"));
  return std::unique_ptr<CuttingProxy>(
      new CuttingProxy(target, std::move(listener)));
}

CuttingProxy::CuttingProxy(std::string target, tcp::Listener listener)
    : target_(std::move(target)),
      listener_(std::move(listener)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  ALPHEUS_CHECK(wake_.is_open(), "a proxy needs an eventfd");
  thread_ = std::thread([this] { Run(); });
}

CuttingProxy::~CuttingProxy() {
  ends_ = true;
  Wake();
  thread_.join();
}

void CuttingProxy::Cut() {
  is_cut_ = true;
  Wake();
  has_seen_cut_.wait(false);
}

void CuttingProxy::Heal() {
  has_seen_cut_ = false;
  is_cut_ = false;
  Wake();
}

void CuttingProxy::Wake() {
  const uint64_t one = 1;
  // Fails only when it is full of wakes already.
  (void)!write(wake_.get(), &one, sizeof(one));
}

void CuttingProxy::Run() {
  while (!ends_) {
    Wait();
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof(count));  // nothing there is fine
    if (is_cut_) {
      has_seen_cut_ = true;
      has_seen_cut_.notify_all();
      continue;
    }
    Accept();
    for (Link& link : links_) {
      for (Stream& stream : link.streams) Pass(&link, &stream);
    }
    links_.remove_if([](const Link& link) { return link.is_broken; });
  }
}

// Until something can be done.
void CuttingProxy::Wait() {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  if (!is_cut_) {
    fds.push_back({listener_.socket.get(), POLLIN, 0});
    for (const Link& link : links_) {
      for (const Stream& stream : link.streams) {
        if (!stream.bytes.empty()) {
          fds.push_back({stream.to->get(), POLLOUT, 0});
        } else if (!stream.has_ended) {
          fds.push_back({stream.from->get(), POLLIN, 0});
        }
      }
    }
  }
  poll(fds.data(), fds.size(), -1);
}

void CuttingProxy::Accept() {
  for (;;) {
    tcp::Accepted accepted = tcp::AcceptOne(listener_.socket);
    if (!accepted.socket.is_open()) return;
    absl::StatusOr<tcp::Descriptor> server = tcp::StartConnect(target_, "");
    // Closing what was accepted tells the client.
    if (!server.ok()) continue;
    Link& link = links_.emplace_back();
    link.client = std::move(accepted.socket);
    link.server = *std::move(server);
    link.streams = {Stream{&link.client, &link.server},
                    Stream{&link.server, &link.client}};
  }
}

void CuttingProxy::Pass(Link* link, Stream* stream) {
  if (stream->bytes.empty() && !stream->has_ended) {
    stream->bytes.resize(kBufferBytes);
    const tcp::IoResult got = tcp::ReceiveSome(*stream->from, stream->bytes);
    stream->bytes.resize(got.bytes);
    if (got.outcome == tcp::IoOutcome::kClosed) {
      stream->has_ended = true;
      tcp::EndSending(*stream->to);
    }
  }
  if (!stream->bytes.empty()) {
    iovec bytes = {stream->bytes.data(), stream->bytes.size()};
    const tcp::IoResult sent = tcp::SendSome(*stream->to, {&bytes, 1});
    passed_bytes_ += sent.bytes;
    stream->bytes.erase(
        stream->bytes.begin(),
        stream->bytes.begin() + static_cast<ptrdiff_t>(sent.bytes));
    if (sent.outcome == tcp::IoOutcome::kClosed) link->is_broken = true;
  }
  if (link->streams[0].has_ended && link->streams[1].has_ended) {
    link->is_broken = true;
  }
}

}  // namespace alpheus::testing
