# SPDX-License-Identifier: Apache-2.0
"""locate: which node is to be asked next whether it is the primary.

Idea: a client knows the addresses of some nodes. A node that is asked says that
it is the primary, or who is, as far as it knows. The client follows such hints
first, each at most once in a round, and then asks the nodes that it knows, one
after the other. When it has asked all in vain, it rests, longer and longer.

The rules are those of api/client/locate/primary_search.h: PSR1 (each known
address is asked once in each round), PSR2 (a hint is followed once in a round)
and PSR3 (rests, in backoff.py).

Thread safety: one thread at a time. Pure: time and randomness are the caller's.
"""

from __future__ import annotations

from typing import Callable, NamedTuple, Sequence, Set

from alpheus.backoff import Backoff, Rests


class Step(NamedTuple):
    """The next question."""

    address: str  # to be asked
    not_before: float  # seconds on the caller's clock


class PrimarySearch:
    """A search for the primary that goes on for as long as it is asked to."""

    def __init__(self, addresses: Sequence[str], rests: Rests,
                 random: Callable[[], float]) -> None:
        """Requires: at least one address. `random` returns a number from 0 to
        below 1."""
        # Not all clients begin with the same node.
        first = int(random() * len(addresses))
        self._addresses = [*addresses[first:], *addresses[:first]]
        self._backoff = Backoff(rests, random)
        self._asked = ""
        self._hint = ""
        self._next = 0  # of the addresses, in this round
        self._tried: Set[str] = set()  # in this round

    def next(self, now: float) -> Step:
        """Returns which node is to be asked, and when."""
        hint, self._hint = self._hint, ""
        if hint and hint not in self._tried:  # PSR2
            return self._ask(hint, now)
        while (self._next < len(self._addresses)
               and self._addresses[self._next] in self._tried):
            self._next += 1
        not_before = now
        if self._next == len(self._addresses):
            not_before += self._backoff.rest()
            self._begin_round()
        return self._ask(self._addresses[self._next], not_before)

    def not_primary(self, hint: str = "") -> None:
        """The node that was asked is not the primary, and names another one, or
        nobody (empty)."""
        self._hint = hint

    def found(self) -> None:
        """The node that was asked is the primary. The next search begins with
        it."""
        self._backoff.succeeded()
        self._begin_round()
        # It may be a node that only others knew.
        self._hint = self._asked

    def _ask(self, address: str, not_before: float) -> Step:
        self._asked = address
        self._tried.add(address)
        return Step(address, not_before)

    def _begin_round(self) -> None:
        self._next = 0
        self._tried.clear()
        self._hint = ""
