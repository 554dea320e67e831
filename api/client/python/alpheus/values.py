# SPDX-License-Identifier: Apache-2.0
"""values: what is appended and read. All of them are immutable.

Thread safety: values may be shared by threads.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional, Tuple


class Durability(enum.Enum):
    """How durable a record is when its request is answered."""

    ACCEPTED = "the primary has it in memory: a crash of the primary may take it"
    LOCAL = "the primary has persisted it"
    QUORUM = "W replicas have persisted it: it outlives any crash the log does"
    ALL = "all members in sync have persisted it, at least W"


class Consistency(enum.Enum):
    """What a read shows that is no tail."""

    LINEARIZABLE = "each record that anybody knew to be durable when it began"
    LOCAL = "what the node has: faster, but another primary may have more"


class Place(NamedTuple):
    """Place of a record: an LSN says something only with its epoch."""

    epoch: int
    lsn: int  # from 1


class Payload(NamedTuple):
    """A payload, or several that are appended as one record, all or none."""

    parts: Tuple[bytes, ...]
    tag: int = 0  # that readers may filter by
    # Appends only if the record gets this LSN.
    expected_lsn: Optional[int] = None
    # Appends only if the last request in the log is of the same client.
    only_if_last: bool = False
    # When the request is answered. None: as the client's options say.
    durability: Optional[Durability] = None

    def size(self) -> int:
        """Returns the bytes of all parts."""
        return sum(map(len, self.parts))


class Appended(NamedTuple):
    """A request that is in the log, as durable as asked for."""

    # None if a primary only said that it is in the log.
    place: Optional[Place]


class Record(NamedTuple):
    """A durable record."""

    place: Place
    client: Place  # that appended it
    sequence: int  # of the client's request, from 1
    tag: int
    parts: Tuple[bytes, ...]  # one, or a batch

    @property
    def data(self) -> bytes:
        """The payload; of a batch all parts, joined."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)


class Exposure(NamedTuple):
    """Records that a crash of the primary may take."""

    records: int  # now
    records_max: int  # ever


class Backup(NamedTuple):
    """What a backup has: all records that were durable when it began."""

    log_id: str  # a UUID
    epoch: int
    head_lsn: int  # the first one, or the next one if there is none
    end_lsn: int  # the last one; head_lsn - 1: there is none


class LogStatus(NamedTuple):
    """The state of a log, as a node knows it. If it is not primary, only
    `primary_node` and `primary_address` say something."""

    is_primary: bool
    epoch: int  # that requests carry
    head_lsn: int  # the oldest that is not cleaned
    durable_lsn: int  # the last that is durable
    next_lsn: int  # of the next record
    payload_bytes_max: int
    clients: int  # that have begun and not ended
    primary_node: int  # 0: unknown, or this node
    primary_address: str  # empty: unknown, or this node
    is_confirmed: bool = False  # it was primary still when it was asked
