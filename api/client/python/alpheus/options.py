# SPDX-License-Identifier: Apache-2.0
"""options: what a client can be told. All times are in seconds.

Thread safety: immutable.
"""

from __future__ import annotations

import dataclasses
from typing import Optional, Tuple

import grpc

from alpheus.append_session import Limits
from alpheus.backoff import Rests


@dataclasses.dataclass(frozen=True)
class LogClientOptions:
    """Options of a client.

    addresses: nodes that may be primary, "host:port" of alpheusd --serve.
    log: name of the log.
    limits: how much may have no answer.
    rests: rests between two rounds of a search for the primary.
    room_rests: rests of a client whose log has no room.
    message_bytes_max: bytes of payloads of a message, unless it has one.
    answer_seconds: that a node has to answer one question.
    stall_seconds: after which a node that says nothing is given up.
    search_seconds: for which readers look for a primary; None: for ever.
        Requests to append wait for ever, until the client is closed.
    credit_bytes: that a tail may have under way.
    credentials: of a proxy with TLS; None: no TLS.
    """

    addresses: Tuple[str, ...]
    log: str = "main"
    limits: Limits = Limits()
    rests: Rests = Rests(0.01, 1.0)
    room_rests: Rests = Rests(0.02, 0.5)
    message_bytes_max: int = 64 << 10
    answer_seconds: float = 2.0
    stall_seconds: float = 2.0
    search_seconds: Optional[float] = 60.0
    credit_bytes: int = 1 << 20
    credentials: Optional[grpc.ChannelCredentials] = None

    def __post_init__(self) -> None:
        if isinstance(self.addresses, str):
            raise TypeError("addresses is one string; give a list of them")
        object.__setattr__(self, "addresses", tuple(self.addresses))
        if not self.addresses:
            raise ValueError(
                "no address: name at least one node that serves the log")
        for name in ("message_bytes_max", "answer_seconds", "stall_seconds",
                     "credit_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must "
                                 "be more than 0")
        if not 1 <= self.limits.unanswered_max <= 1024:
            raise ValueError(
                f"limits.unanswered_max is {self.limits.unanswered_max}; the "
                "service takes 1 to 1024")
