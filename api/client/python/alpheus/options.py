# SPDX-License-Identifier: Apache-2.0
"""options: what a client can be told. All times are in seconds.

Thread safety: immutable.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Optional, Tuple

import grpc

from alpheus.append_session import Limits
from alpheus.backoff import Rests
from alpheus.values import Durability


@dataclasses.dataclass(frozen=True)
class LogClientOptions:
    """Options of a client.

    addresses: nodes that may be primary, "host:port" of alpheusd --serve.
    log: name of the log.
    durability: when requests are answered that say nothing of it themselves.
    limits: how much may have no answer.
    rests: rests between two rounds of a search for the primary.
    room_rests: rests of a client whose log has no room.
    message_bytes_max: bytes of payloads of a message, unless it has one.
    answer_seconds: that a node has to answer one question, and to take a
        connection.
    stall_seconds: after which a node that says nothing is given up.
    search_seconds: for which readers look for a primary; None: for ever.
        Requests to append wait for ever, until the client is closed.
    credit_bytes: that a tail may have under way.
    credentials: TLS: grpc.ssl_channel_credentials of the authorities, and of
        the client's own key and certificate if the nodes ask for one; None: no
        TLS.
    token: that is shown in each call, where the nodes ask for one. Without TLS
        only to loopback addresses.
    server_name: that the nodes' certificates have, if it is not that of the
        address.
    """

    addresses: Tuple[str, ...]
    log: str = "main"
    durability: Durability = Durability.QUORUM
    limits: Limits = Limits()
    rests: Rests = Rests(0.01, 1.0)
    room_rests: Rests = Rests(0.02, 0.5)
    message_bytes_max: int = 64 << 10
    answer_seconds: float = 2.0
    stall_seconds: float = 2.0
    search_seconds: Optional[float] = 60.0
    credit_bytes: int = 1 << 20
    credentials: Optional[grpc.ChannelCredentials] = None
    token: str = dataclasses.field(default="", repr=False)
    server_name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.addresses, str):
            raise TypeError("addresses is one string; give a list of them")
        object.__setattr__(self, "addresses", tuple(self.addresses))
        if not self.addresses:
            raise ValueError(
                "no address: name at least one node that serves the log")
        if not all("!" <= c <= "~" for c in self.token):
            raise ValueError(
                "the token has white space or characters that no token has. Is "
                "there a line end behind it?")
        for address in self.addresses:
            if not self.may_call(address):
                raise ValueError(
                    f"without TLS everybody on the way to {address} could read "
                    "the token. Set credentials; or name 127.0.0.1, [::1] or "
                    "localhost, if the node is on this machine")
        for name in ("message_bytes_max", "answer_seconds", "stall_seconds",
                     "credit_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must "
                                 "be more than 0")
        if not 1 <= self.limits.unanswered_max <= 1024:
            raise ValueError(
                f"limits.unanswered_max is {self.limits.unanswered_max}; the "
                "service takes 1 to 1024")

    def may_call(self, address: str) -> bool:
        """Returns whether the token may be sent there: a token leaves this
        machine only through TLS (CHS1 in api/client/grpc/channel_security.h).
        Nodes name other nodes, so this is asked of each address."""
        return (self.credentials is not None or not self.token
                or _is_loopback(address))


# Four numbers of 127.0.0.0/8, written out. Other spellings are names to some.
_BYTE = r"(?:[1-9]?[0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"
_LOOPBACK = re.compile(
    rf"(?:localhost|\[::1\]|127\.{_BYTE}\.{_BYTE}\.{_BYTE}):[0-9]+",
    re.IGNORECASE)


def _is_loopback(address: str) -> bool:
    """Returns whether an address is of this machine by its spelling. A name may
    lead anywhere tomorrow."""
    return _LOOPBACK.fullmatch(address) is not None
