# SPDX-License-Identifier: Apache-2.0
"""backoff: how long to rest before something is tried again.

A rest lasts between half and all of a time that begins with `rest_min`,
doubles at each rest, and is at most `rest_max` (PSR3). Lengths are random, so
that many clients don't come back at once.

Thread safety: one thread at a time. Pure: randomness is the caller's.
"""

from __future__ import annotations

from typing import Callable, NamedTuple


class Rests(NamedTuple):
    """Bounds of rests, in seconds."""

    rest_min: float = 0.01
    rest_max: float = 1.0


class Backoff:
    """Draws rests that get longer until there is success."""

    def __init__(self, rests: Rests, random: Callable[[], float]) -> None:
        """`random` returns a number from 0 to below 1."""
        self._rests = rests
        self._random = random
        self._rest = 0.0

    def rest(self) -> float:
        """Returns the length of the next rest, in seconds."""
        self._rest = min(2 * self._rest or self._rests.rest_min,
                         self._rests.rest_max)
        return self._rest / 2 * (1 + self._random())

    def succeeded(self) -> None:
        """The next rest is a short one again."""
        self._rest = 0.0
