# SPDX-License-Identifier: Apache-2.0
"""reading: durable records of a log, from primary to primary.

Idea: only the primary has the log open. A reader that loses it goes on with the
next one, at the LSN behind the last record that it has. Durable records are the
same there.

Thread safety: one thread at a time for each reader, except `close`.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from typing import Any, Iterator, Optional, Sequence

import grpc

from alpheus import errors, wire
from alpheus.backoff import Backoff
from alpheus.nodes import Nodes
from alpheus.options import LogClientOptions
from alpheus.v1 import log_service_pb2 as pb
from alpheus.v1 import log_service_pb2_grpc as pb_grpc
from alpheus.values import Consistency, Record
from alpheus.watchdog import Watchdog


class Reader:
    """An iterator of records that follows the log to its next primaries. Made
    by LogClient.read and LogClient.tail.

    Iterating raises OutOfLog (the record was cleaned), DataLoss, NotFound,
    NoPrimary, Closed (the client is closed). After an error it may go on: it
    connects again. Memory: messages of 64 to 256 KiB, or one record.
    """

    def __init__(self, nodes: Nodes, options: LogClientOptions,
                 watchdog: Watchdog, from_lsn: int, to_lsn: int,
                 tags: Sequence[int], is_tail: bool,
                 consistency: Consistency = Consistency.LINEARIZABLE) -> None:
        self._nodes = nodes
        self._options = options
        self._watchdog = watchdog
        self._to_lsn = to_lsn
        self._tags = list(tags)
        self._is_tail = is_tail
        self._consistency = consistency
        # All records before this LSN were returned; 0: none yet.
        self.next_lsn = from_lsn
        self._received: Iterator[pb.Record] = iter(())
        self._received_next_lsn = from_lsn
        self._lock = threading.Lock()
        self._call: Any = None
        self._credit: Optional[_Credit] = None
        self._address = ""
        self._is_closed = False
        self._waiting_since: Optional[float] = None
        self._backoff = Backoff(options.rests, random.random)
        self._lost_since: Optional[float] = None  # without a message
        self._last_said = "the call has ended"

    def __iter__(self) -> Reader:
        return self

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> Record:
        """Returns the next record. A tail waits for it."""
        while not self._is_closed:
            for message in self._received:
                record = wire.record_of(message)
                self.next_lsn = record.place.lsn + 1
                if self._credit is not None:
                    self._credit.took(sum(map(len, record.parts)))
                return record
            self.next_lsn = max(self.next_lsn, self._received_next_lsn)
            if not self._receive():
                break
        raise StopIteration

    def close(self) -> None:
        """Ends. Iterating stops, also on a thread that waits. By any
        thread."""
        with self._lock:
            self._is_closed = True
            self._drop_call()

    # --- Helpers ---

    def _receive(self) -> bool:
        """Gets the next message. Returns whether there is one."""
        while not self._is_closed:
            if self._call is None:
                self._connect()
                continue
            response = self._await_response()
            if response is None:
                return False
            if response is _LOST:
                self._rest()
            else:
                self._backoff.succeeded()
                self._lost_since = None
                self._received = iter(response.records)
                self._received_next_lsn = response.next_lsn
                return True
        return False

    def _await_response(self) -> Any:
        """Returns the next message of the call; None: it is the end; _LOST: the
        call has ended. Errors: those that no other node would change."""
        call, address = self._call, self._address
        if call is None:  # closed
            return None
        self._waiting_since = time.monotonic()
        watch = self._watchdog.watch(self._check)
        try:
            return next(call)
        except StopIteration:
            self._forget(call)
            # A tail has no end of its own.
            return _LOST if self._is_tail else None
        except grpc.RpcError as error:
            self._forget(call)
            if self._is_closed:
                return None
            if self._nodes.closing.is_set():
                raise errors.Closed("the client is closed") from error
            if wire.is_final_for_readers(error):
                raise wire.error_of(error, address) from error
            self._last_said = wire.tell(error, address)
            return _LOST
        finally:
            self._watchdog.forget(watch)
            self._waiting_since = None

    def _rest(self) -> None:
        """Rests before the next call, so that a node of no use keeps no core
        busy. Errors: NoPrimary (it has been so for search_seconds)."""
        now = time.monotonic()
        if self._lost_since is None:
            self._lost_since = now
        patience = self._options.search_seconds
        if patience is not None and now - self._lost_since > patience:
            self._lost_since = None
            raise errors.NoPrimary(
                f"log {self._options.log}: no record was read in {patience} s, "
                f"from LSN {self.next_lsn} on. Last: {self._last_said}")
        self._nodes.closing.wait(self._backoff.rest())

    def _connect(self) -> None:
        """Begins a call to the primary. Errors: as Nodes.ask_primary."""
        address, _ = self._nodes.ask_primary(
            lambda stub, timeout: stub.GetStatus(
                pb.GetStatusRequest(log=self._options.log), timeout=timeout),
            lambda status: status.is_primary)
        stub = self._nodes.stub(address)
        with self._lock:
            if self._is_closed:
                return
            self._address = address
            try:
                self._begin(stub)
            except ValueError as error:  # of a channel that was closed
                raise errors.Closed("the client is closed") from error

    def _begin(self, stub: pb_grpc.LogServiceStub) -> None:
        """Begins a call. Lock held."""
        if self._is_tail:
            self._credit = _Credit(
                pb.TailRequest(begin=pb.TailRequest.Begin(
                    log=self._options.log, from_lsn=self.next_lsn,
                    tags=self._tags)), self._options.credit_bytes)
            self._call = stub.Tail(self._credit)
        else:
            self._call = stub.Read(pb.ReadRequest(
                log=self._options.log, from_lsn=self.next_lsn,
                to_lsn=self._to_lsn, tags=self._tags,
                consistency=wire.consistency_of(self._consistency)))

    def _forget(self, call: Any) -> None:
        with self._lock:
            if self._call is call:
                self._drop_call()

    def _drop_call(self) -> None:
        """Ends the call. Lock held."""
        if self._call is not None:
            self._call.cancel()
        if self._credit is not None:
            self._credit.end()
        self._call = self._credit = None

    def _check(self, now: float) -> None:
        """Ends the call of a node that says nothing. A tail may have nothing to
        say: the node is asked whether it is primary still."""
        since = self._waiting_since
        call, address = self._call, self._address
        if (since is None or call is None
                or now - since <= self._options.stall_seconds):
            return
        if self._is_tail and self._is_primary(address):
            self._waiting_since = time.monotonic()
        else:
            call.cancel()

    def _is_primary(self, address: str) -> bool:
        try:
            return self._nodes.stub(address).GetStatus(
                pb.GetStatusRequest(log=self._options.log),
                timeout=self._options.answer_seconds).is_primary
        except (grpc.RpcError, errors.Closed, ValueError):
            return False


_LOST = object()


class _Credit:
    """The requests of a tail, which gRPC asks for on a thread of its own: what
    is read, and then leave to send more, half a window at a time."""

    def __init__(self, begin: pb.TailRequest, window: int) -> None:
        self._messages: queue.SimpleQueue[Optional[pb.TailRequest]] = \
            queue.SimpleQueue()
        self._window = window
        self._taken = 0  # since the last message
        self._messages.put(begin)
        self._messages.put(_credit(window))

    def __iter__(self) -> _Credit:
        return self

    def __next__(self) -> pb.TailRequest:
        message = self._messages.get()
        if message is None:
            raise StopIteration
        return message

    def took(self, size: int) -> None:
        """The reader has taken a record of so many bytes."""
        self._taken += size
        if 2 * self._taken >= self._window:
            self._messages.put(_credit(self._taken))
            self._taken = 0

    def end(self) -> None:
        """Sends no more."""
        self._messages.put(None)


def _credit(size: int) -> pb.TailRequest:
    return pb.TailRequest(credit=pb.TailRequest.Credit(bytes=size))
