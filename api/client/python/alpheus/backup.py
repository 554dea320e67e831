# SPDX-License-Identifier: Apache-2.0
"""backup: a backup of a log on its way from the primary into a file.

Idea: the primary sends a region file in pieces, and their sum. They go into a
file of another name, which gets its own once the sum holds and all is on the
disk. So a backup that was cut off leaves nothing behind, and no file is ever
replaced.

Thread safety: one thread for each backup.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import time
from typing import Any, BinaryIO, Generator, Iterator, Optional

import grpc

from alpheus import errors, wire
from alpheus.nodes import Nodes
from alpheus.options import LogClientOptions
from alpheus.v1 import admin_service_pb2 as admin_pb
from alpheus.v1 import log_service_pb2 as pb
from alpheus.values import Backup
from alpheus.watchdog import Watchdog


def back_up(nodes: Nodes, options: LogClientOptions, watchdog: Watchdog,
            path: str) -> Backup:
    """Makes the file. Errors: as LogClient.backup."""
    _check_free(path)
    folder = os.path.dirname(path) or "."
    descriptor, unnamed = tempfile.mkstemp(
        dir=folder, prefix=os.path.basename(path) + ".", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            backup = _Arrival(nodes, options, watchdog).take(file)
            file.flush()
            os.fsync(file.fileno())
        os.link(unnamed, path)  # fails if the path was taken meanwhile
        _sync_folder(folder)
    finally:
        os.unlink(unnamed)
    return backup


class _Arrival:
    """A backup that arrives."""

    def __init__(self, nodes: Nodes, options: LogClientOptions,
                 watchdog: Watchdog) -> None:
        self._nodes = nodes
        self._log = options.log
        self._stall_seconds = options.stall_seconds
        self._watchdog = watchdog
        self._call: Any = None
        self._address = ""
        self._waiting_since: Optional[float] = None
        self._is_silent = False

    def take(self, file: BinaryIO) -> Backup:
        """Writes all of it. Errors: as LogClient.backup."""
        self._address, _ = self._nodes.ask_primary(
            lambda stub, timeout: stub.GetStatus(
                pb.GetStatusRequest(log=self._log), timeout=timeout),
            lambda status: status.is_primary)
        try:
            self._call = self._nodes.admin_stub(self._address).Backup(
                admin_pb.BackupRequest(log=self._log))
        except ValueError as error:  # of a channel that was closed
            raise errors.Closed("the client is closed") from error
        try:
            with contextlib.closing(self._messages()) as messages:
                return self._write(messages, file)
        finally:
            self._call.cancel()

    def _write(self, messages: Iterator[admin_pb.BackupResponse],
               file: BinaryIO) -> Backup:
        begin = next(messages, admin_pb.BackupResponse()).begin
        if not begin.log_id:
            raise self._cut_off("it does not begin")
        file.truncate(begin.region_bytes)  # what no piece has is zero
        sum_of_pieces = hashlib.sha256()
        pieces = 0
        for message in messages:
            if message.HasField("end"):
                end = message.end
                if (end.pieces, end.sha256) != (pieces,
                                                sum_of_pieces.digest()):
                    raise errors.DataLoss(
                        f"log {self._log}: the sum of the backup does not "
                        "hold: it was damaged on the way. Begin it again")
                return Backup(begin.log_id, begin.epoch, begin.head_lsn,
                              begin.end_lsn)
            piece = message.piece
            sum_of_pieces.update(struct.pack("<Q", piece.offset))
            sum_of_pieces.update(piece.data)
            pieces += 1
            file.seek(piece.offset)
            file.write(piece.data)
        raise self._cut_off("it has no end")

    def _messages(self) -> Generator[admin_pb.BackupResponse, None, None]:
        """Yields what the primary sends, as long as it says anything."""
        watch = self._watchdog.watch(self._check)
        try:
            self._waiting_since = time.monotonic()
            for message in self._call:
                self._waiting_since = None  # the disk may take its time
                yield message
                self._waiting_since = time.monotonic()
        except grpc.RpcError as error:
            if self._nodes.closing.is_set():
                raise errors.Closed("the client is closed") from error
            if self._is_silent:
                raise self._cut_off("the node says nothing") from error
            raise wire.error_of(error, self._address) from error
        finally:
            self._waiting_since = None
            self._watchdog.forget(watch)

    def _check(self, now: float) -> None:
        """Ends the call to a node that says nothing."""
        since = self._waiting_since
        if since is not None and now - since > self._stall_seconds:
            self._is_silent = True
            self._call.cancel()

    def _cut_off(self, why: str) -> errors.AlpheusError:
        return errors.AlpheusError(
            f"log {self._log}: the backup of node {self._address} is not "
            f"whole: {why}. Begin it again")


def _check_free(path: str) -> None:
    if os.path.lexists(path):
        raise FileExistsError(
            f"{path} is there; a backup replaces no file. Name another one")


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
