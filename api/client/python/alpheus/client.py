# SPDX-License-Identifier: Apache-2.0
"""client: appends to a log, each record exactly once, and reads it.

    with alpheus.LogClient(["10.0.0.1:7411", "10.0.0.2:7411"]) as log:
        appended = log.append(b"hello").result()  # durable
        for record in log.read():
            print(record.place.lsn, record.data)

Thread safety: all members by many threads.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Optional, Sequence, Union

import grpc

from alpheus import errors, wire
from alpheus.appender import AppendFuture, Appender
from alpheus.backup import back_up
from alpheus.nodes import Nodes
from alpheus.options import LogClientOptions
from alpheus.reading import Reader
from alpheus.v1 import log_service_pb2 as pb
from alpheus.values import (Backup, Consistency, Durability, Exposure,
                            LogStatus, Payload, Place)
from alpheus.watchdog import Watchdog

Bytes = Union[bytes, bytearray, memoryview]


class LogClient:
    """A client of one log. It knows some nodes, finds the primary, and follows
    the log when another node becomes primary.

    Making one connects to nothing, and can't fail for a node. As a context
    manager it waits at the end until all requests have their answers, unless
    an exception is under way.
    """

    def __init__(self, addresses: Union[Sequence[str], LogClientOptions],
                 log: str = "main", **more: Any) -> None:
        """`addresses`: nodes that serve the log, "host:port"; or all options.
        `more`: other options (options.py). Errors: ValueError, TypeError (an
        option)."""
        if isinstance(addresses, LogClientOptions):
            options = dataclasses.replace(addresses, **more)
        else:
            options = LogClientOptions(addresses, log, **more)  # type: ignore
        self._options = options
        self._nodes = Nodes(options)
        self._watchdog = Watchdog(min(1.0, options.stall_seconds / 4))
        self._appender = Appender(self._nodes, options, self._watchdog)

    def __enter__(self) -> LogClient:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def append(self, data: Bytes, tag: int = 0,
               expected_lsn: Optional[int] = None, only_if_last: bool = False,
               *, durability: Optional[Durability] = None,
               timeout: Optional[float] = None) -> AppendFuture:
        """Appends one record, and returns at once. The future has its place
        once the record is as durable as asked for. Requests of this object are
        in the log in the order of their calls.

        tag: number that readers may filter by, 0 to 2**32 - 1.
        expected_lsn: appends only if the record gets this LSN.
        only_if_last: appends only if the last request in the log came from this
            object.
        durability: None: that of the options.
        timeout: seconds to wait for room if too much has no answer; None: for
            as long as it takes. A callback of a future never waits.

        Errors, nothing was done: Busy, InvalidRequest, Closed, or why the
        client has ended. Errors of the future: ConditionFailed, InvalidRequest,
        NotAppended (not in the log), OutcomeUnknown.
        """
        return self._appender.append(
            _payload((_bytes(data),), tag, expected_lsn, only_if_last,
                     durability), timeout)

    def append_batch(self, parts: Iterable[Bytes], tag: int = 0,
                     expected_lsn: Optional[int] = None,
                     only_if_last: bool = False, *,
                     durability: Optional[Durability] = None,
                     timeout: Optional[float] = None) -> AppendFuture:
        """Appends several payloads as one record, all or none. Else as
        append."""
        return self._appender.append(
            _payload(tuple(map(_bytes, parts)), tag, expected_lsn,
                     only_if_last, durability), timeout)

    def flush(self, timeout: Optional[float] = None) -> None:
        """Waits until all requests have their answers; the futures say which
        ones. `timeout`: seconds; None: no limit. Errors: NotFinished."""
        self._appender.flush(timeout)

    @property
    def unknown_outcomes(self) -> int:
        """How many outcomes were unknown for a while, so far: a stream ended,
        and its primary had not said what became of a request. The client has
        resolved them since, or will. A primary that is drained leaves none."""
        return self._appender.unknown_outcomes

    def force(self, place: Place) -> int:
        """Makes a record durable, and all before it. Returns the last LSN that
        is durable. Errors: OutOfLog (the record is not in the log: it was lost
        before it was durable, or was cleaned), NoPrimary, Closed."""
        request = pb.ForceRequest(log=self._options.log,
                                  place=wire.message_of(place))
        _, forced = self._nodes.ask_primary(
            lambda stub, timeout: stub.Force(request, timeout=timeout))
        return forced.durable_lsn

    def wait_durable(self, place: Place) -> int:
        """Waits until a record is durable, for search_seconds at most. Else as
        force."""
        request = pb.WaitDurableRequest(log=self._options.log,
                                        place=wire.message_of(place))
        _, waited = self._nodes.ask_primary(
            lambda stub, timeout: stub.WaitDurable(request, timeout=timeout))
        return waited.durable_lsn

    def exposure(self) -> Exposure:
        """Returns how many records a crash of the primary may take. Errors:
        NotFound, NoPrimary, Closed."""
        _, exposed = self._nodes.ask_primary(
            lambda stub, timeout: stub.GetExposure(
                pb.GetExposureRequest(log=self._options.log), timeout=timeout))
        return Exposure(exposed.records, exposed.records_max)

    def read(self, from_lsn: int = 0, to_lsn: int = 0,
             tags: Sequence[int] = (), *,
             consistency: Consistency = Consistency.LINEARIZABLE) -> Reader:
        """Returns an iterator of durable records, in order.

        from_lsn: the first one; 0: the oldest that is not cleaned.
        to_lsn: the last one; 0: the last that is durable when the node begins
            to read. OutOfLog: it is not durable yet.
        tags: records with one of these tags only; none: all.
        consistency: what it shows. A reader that is handed on to another
            primary begins to read again there.
        """
        return self._reader(from_lsn, to_lsn, tags, False, consistency)

    def tail(self, from_lsn: int = 0, tags: Sequence[int] = ()) -> Reader:
        """Returns an iterator of durable records that waits for more, until it
        is closed: `close()` by any thread. At most `credit_bytes` and one
        record are under way. Else as read."""
        return self._reader(from_lsn, 0, tags, True)

    def cleanup(self, through_lsn: int) -> int:
        """Cleans records that are no longer needed, up to this one. Returns the
        oldest LSN that is not cleaned, durably. It may be a lower one: the
        service keeps what it needs itself. Errors: OutOfLog (it is not durable
        yet), NoPrimary, Closed. After NoPrimary it may be cleaned or not; to
        clean again does no harm."""
        _, cleaned = self._nodes.ask_primary(
            lambda stub, timeout: stub.Cleanup(
                pb.CleanupRequest(log=self._options.log,
                                  through_lsn=through_lsn), timeout=timeout))
        return cleaned.head_lsn

    def status(self, address: Optional[str] = None, *,
               confirm: bool = False) -> LogStatus:
        """Returns the state of the log, as its primary knows it, or the node
        with this address. It may be old, unless is_confirmed: the node makes
        sure first, as far as it can, if `confirm`. Errors: NotFound, NoPrimary,
        Closed, AlpheusError (the node gives no answer)."""
        request = pb.GetStatusRequest(log=self._options.log, confirm=confirm)
        if address is None:
            _, found = self._nodes.ask_primary(
                lambda stub, timeout: stub.GetStatus(request, timeout=timeout),
                lambda status: status.is_primary)
            return wire.status_of(found)
        try:
            return wire.status_of(self._nodes.stub(address).GetStatus(
                request, timeout=self._options.answer_seconds))
        except grpc.RpcError as error:
            raise wire.error_of(error, address) from error

    def backup(self, path: str) -> Backup:
        """Writes a backup of the log into a new file: all records that are
        durable now. `alpheus cat`, `inspect`, `verify` and `salvage` read it;
        have `verify` read it before it counts. The file gets its name when it
        is whole and on the disk. The log goes on meanwhile. The token needs the
        roles `admin` and `read`, and nodes that ask for no tokens send no
        backup. May block for as long as it takes, but stall_seconds at most
        without a word of the primary.

        Errors, no file is left: FileExistsError (the path is taken); OSError
        (a full disk); NotFound, NotAllowed, NoPrimary, Closed; DataLoss (a
        record can't be read, or bytes were damaged on the way); AlpheusError
        (`code` ABORTED: a record was cleaned before it was sent; else the log
        has moved to another node: begin again)."""
        return back_up(self._nodes, self._options, self._watchdog, path)

    def close(self) -> None:
        """Ends. Requests that were never sent get Closed, and those that have
        no answer OutcomeUnknown: flush first. Readers stop. May block for
        answer_seconds. A second call does nothing."""
        self._appender.stop()
        self._nodes.close()

    def _reader(self, from_lsn: int, to_lsn: int, tags: Sequence[int],
                is_tail: bool,
                consistency: Consistency = Consistency.LINEARIZABLE) -> Reader:
        if self._nodes.closing.is_set():
            raise errors.Closed("the client is closed")
        return Reader(self._nodes, self._options, self._watchdog, from_lsn,
                      to_lsn, tags, is_tail, consistency)


def _bytes(data: Bytes) -> bytes:
    if isinstance(data, str):
        raise TypeError("a payload is bytes; encode the text first")
    return bytes(data)


def _payload(parts: Sequence[bytes], tag: int, expected_lsn: Optional[int],
             only_if_last: bool, durability: Optional[Durability]) -> Payload:
    if not 0 <= tag < 1 << 32:
        raise ValueError(f"tag {tag} is not from 0 to 2**32 - 1")
    if expected_lsn is not None and not 0 <= expected_lsn < 1 << 64:
        raise ValueError(f"expected_lsn {expected_lsn} is no LSN")
    return Payload(tuple(parts), tag, expected_lsn, only_if_last, durability)
