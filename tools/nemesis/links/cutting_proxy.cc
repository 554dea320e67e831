// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/links/cutting_proxy.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::demo {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<CuttingProxy>> CuttingProxy::Start(
    const std::string& target) {
  ALPHEUS_ASSIGN_OR_RETURN(fabric::tcp::Listener listener,
                           fabric::tcp::ListenOn("127.0.0.1:0"));
  return std::unique_ptr<CuttingProxy>(
      new CuttingProxy(target, std::move(listener)));
}

CuttingProxy::CuttingProxy(std::string target, fabric::tcp::Listener listener)
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

void CuttingProxy::Cut(CutDirection direction) {
  cut_ = direction;
  Wake();
  for (;;) {
    const CutDirection seen = seen_cut_;
    if (seen == direction) return;
    seen_cut_.wait(seen);
  }
}

void CuttingProxy::Heal() { Cut(CutDirection::kNone); }

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
    const CutDirection cut = cut_;
    seen_cut_ = cut;
    seen_cut_.notify_all();
    if (cut == CutDirection::kNone) Accept();
    for (Link& link : links_) {
      for (size_t i = 0; i < link.streams.size(); ++i) {
        if (!IsCut(cut, i)) Pass(&link, &link.streams[i]);
      }
    }
    links_.remove_if([](const Link& link) { return link.is_broken; });
  }
}

// Waits until something can be done.
void CuttingProxy::Wait() {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  const CutDirection cut = seen_cut_;  // a new one wakes
  if (cut == CutDirection::kNone) {
    fds.push_back({listener_.socket.get(), POLLIN, 0});
  }
  for (const Link& link : links_) {
    for (size_t i = 0; i < link.streams.size(); ++i) {
      const Stream& stream = link.streams[i];
      if (IsCut(cut, i)) continue;
      if (!stream.bytes.empty()) {
        fds.push_back({stream.to->get(), POLLOUT, 0});
      } else if (!stream.has_ended) {
        fds.push_back({stream.from->get(), POLLIN, 0});
      }
    }
  }
  poll(fds.data(), fds.size(), -1);
}

void CuttingProxy::Accept() {
  for (;;) {
    fabric::tcp::Accepted accepted = fabric::tcp::AcceptOne(listener_.socket);
    if (!accepted.socket.is_open()) return;
    ++connections_;
    absl::StatusOr<fabric::tcp::Descriptor> server =
        fabric::tcp::StartConnect(target_, "");
    // The client sees the accepted connection close.
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
    const fabric::tcp::IoResult got =
        fabric::tcp::ReceiveSome(*stream->from, stream->bytes);
    stream->bytes.resize(got.bytes);
    if (got.outcome == fabric::tcp::IoOutcome::kClosed) {
      stream->has_ended = true;
      fabric::tcp::EndSending(*stream->to);
    }
  }
  if (!stream->bytes.empty()) {
    iovec bytes = {stream->bytes.data(), stream->bytes.size()};
    const fabric::tcp::IoResult sent =
        fabric::tcp::SendSome(*stream->to, {&bytes, 1});
    passed_bytes_ += sent.bytes;
    stream->bytes.erase(
        stream->bytes.begin(),
        stream->bytes.begin() + static_cast<ptrdiff_t>(sent.bytes));
    if (sent.outcome == fabric::tcp::IoOutcome::kClosed) link->is_broken = true;
  }
  if (link->streams[0].has_ended && link->streams[1].has_ended) {
    link->is_broken = true;
  }
}

}  // namespace alpheus::demo
