# SPDX-License-Identifier: Apache-2.0
"""nodes: connections to the nodes of a log, and calls to its primary.

Thread safety: all members by many threads.
"""

from __future__ import annotations

import math
import random
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple

import grpc

from alpheus import errors, wire
from alpheus.locate import PrimarySearch
from alpheus.options import LogClientOptions
from alpheus.v1 import admin_service_pb2_grpc as admin_pb_grpc
from alpheus.v1 import log_service_pb2_grpc as pb_grpc

# A request is sent again by this package alone. A record may have as many bytes
# as a message of the service, and a little more around them.
_CHANNEL_OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 10),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 32 << 20),
    ("grpc.max_send_message_length", 32 << 20),
)


class Nodes:
    """Keeps one connection to each node, and remembers the primary."""

    def __init__(self, options: LogClientOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._channels: Dict[str, grpc.Channel] = {}
        self._stubs: Dict[str, pb_grpc.LogServiceStub] = {}
        self._primary = ""  # that was found last
        self.closing = threading.Event()

    def stub(self, address: str) -> pb_grpc.LogServiceStub:
        """Returns the calls to a node. Errors: Closed; NotAllowed (without TLS
        the token would leave this machine)."""
        channel = self._channel(address)
        with self._lock:
            stub = self._stubs.get(address)
            if stub is None:
                stub = self._stubs[address] = self._authorized(
                    pb_grpc.LogServiceStub(channel))
            return stub

    def admin_stub(self, address: str) -> admin_pb_grpc.AdminServiceStub:
        """Returns an administrator's calls to a node. Errors: as stub."""
        return self._authorized(
            admin_pb_grpc.AdminServiceStub(self._channel(address)))

    def _channel(self, address: str) -> grpc.Channel:
        if not self._options.may_call(address):
            raise errors.NotAllowed(
                f"without TLS the token is not sent to {address}. Set "
                "credentials")
        with self._lock:
            if self.closing.is_set():
                raise errors.Closed("the client is closed")
            channel = self._channels.get(address)
            if channel is None:
                channel = self._channels[address] = self._connect(address)
            return channel

    def hint_of(self, error: grpc.RpcError) -> str:
        """Returns the primary that a node has named in its error; empty: none
        to which the token may be sent."""
        address: str = wire.details_of(error).not_primary.address
        return address if self._options.may_call(address) else ""

    def new_search(self) -> PrimarySearch:
        """Returns a search that begins with the primary that was found
        last."""
        search = PrimarySearch(self._options.addresses, self._options.rests,
                               random.random)
        with self._lock:
            search.not_primary(self._primary)
        return search

    @property
    def primary(self) -> str:
        """Address of the primary that was found last; empty: none was."""
        with self._lock:
            return self._primary

    def found(self, address: str) -> None:
        """This node is the primary."""
        with self._lock:
            self._primary = address

    def ask_primary(self, ask: Callable[[pb_grpc.LogServiceStub, float], Any],
                    is_answer: Callable[[Any], bool] = lambda answer: True,
                    ) -> Tuple[str, Any]:
        """Asks the nodes until one gives an answer that is good, and returns
        its address and the answer. `ask` gets a node and the seconds that it
        has. Blocks for search_seconds at most.

        Errors: NoPrimary, Closed, and those that no other node would change.
        """
        search = self.new_search()
        end = _after(self._options.search_seconds)
        last_said = "no node was asked"
        while True:
            now = time.monotonic()
            step = search.next(now)
            if end is not None and step.not_before >= end:
                raise errors.NoPrimary(
                    f"log {self._options.log}: no primary was found in "
                    f"{self._options.search_seconds} s. Last: {last_said}. "
                    "Check that the nodes run and serve the log, and that "
                    "`addresses` names them")
            self.closing.wait(step.not_before - now)
            stub = self.stub(step.address)
            try:
                answer = ask(stub, self._options.answer_seconds)
            except grpc.RpcError as error:
                if wire.is_final_for_readers(error):
                    raise wire.error_of(error, step.address) from error
                last_said = wire.tell(error, step.address)
                search.not_primary(self.hint_of(error))
                continue
            except ValueError as error:  # of a channel that was closed
                if not self.closing.is_set():
                    raise
                raise errors.Closed("the client is closed") from error
            if is_answer(answer):
                self.found(step.address)
                return step.address, answer
            last_said = f"node {step.address} is not primary"
            search.not_primary()

    def close(self) -> None:
        """Ends all connections, and what is under way on them."""
        with self._lock:
            self.closing.set()
            channels = list(self._channels.values())
        for channel in channels:
            channel.close()

    def _connect(self, address: str) -> grpc.Channel:
        options = self._options
        # It is no rest: a connection that takes longer is given up.
        connecting = ("grpc.min_reconnect_backoff_ms",
                      math.ceil(options.answer_seconds * 1000))
        more: Tuple[Tuple[str, Any], ...] = (connecting,)
        if options.credentials is None:
            if options.token:  # a proxy of the environment is another machine
                more += (("grpc.enable_http_proxy", 0),)
            return grpc.insecure_channel(address, _CHANNEL_OPTIONS + more)
        if options.server_name:
            more += (("grpc.ssl_target_name_override", options.server_name),)
        return grpc.secure_channel(address, options.credentials,
                                   _CHANNEL_OPTIONS + more)

    def _authorized(self, stub: Any) -> Any:
        """Has all calls show the token."""
        if self._options.token:
            shown = (("authorization", f"Bearer {self._options.token}"),)
            for name, call in list(vars(stub).items()):
                setattr(stub, name, _ShownCall(call, shown))
        return stub


class _ShownCall:
    """A call that shows a token."""

    def __init__(self, call: Any, metadata: Tuple[Tuple[str, str], ...],
                 ) -> None:
        self._call = call
        self._metadata = metadata

    def __call__(self, request: Any, **more: Any) -> Any:
        return self._call(request, metadata=self._metadata, **more)

    def future(self, request: Any, **more: Any) -> Any:
        """As that of the call."""
        return self._call.future(request, metadata=self._metadata, **more)


def _after(seconds: Optional[float]) -> Optional[float]:
    return None if seconds is None else time.monotonic() + seconds
