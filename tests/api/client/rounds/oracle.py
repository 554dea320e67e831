# SPDX-License-Identifier: Apache-2.0
"""oracle: judges a log by what its writers were told of it.

Each writer numbers its records from 1. At the end of a round every record that
was given to it has an answer: it is durable at a place, or will never be in the
log. The oracle compares these answers with the log, from the beginning of the
round before on: so a record is looked for again after the next fail-over. Older
records may be cleaned; their numbers must not come again.

At the end of each round:
  resolved  all records have an answer.
  placed    a durable record is in the log, once, where its writer was told.
            A record that will never be in the log is not in it. All records in
            the log were given to their writers.
  ordered   the records of a writer are in the order of their numbers, and
            without a gap but for those that will never be there.
  clean     a primary that ended in good order left no outcome unknown, not even
            for a while.
Thread safety: one thread.
"""

from __future__ import annotations

import dataclasses
from typing import Dict, List, Optional, Tuple

SHOWN_MAX = 10  # violations that a message has

Place = Tuple[int, int]  # epoch, LSN


class Violation(AssertionError):
    """The log is not what its writers were told."""


@dataclasses.dataclass
class _Writer:
    """What is known of one writer."""

    given: int = 0  # up to which number
    cleaned: int = 0  # up to which number its records may be cleaned
    answered: int = 0  # how many have an answer
    unknown: int = 0  # outcomes for a while, so far
    unknown_before: int = 0  # at the beginning of the round
    given_before: int = 0
    # By number, those that are not cleaned. A place: it is durable there. None:
    # it will never be in the log.
    answers: Dict[int, Optional[Place]] = dataclasses.field(
        default_factory=dict)


NOWHERE = (0, 0)  # place of a durable record that nobody knows


class Oracle:
    """Answers of all writers, and the log that is compared with them."""

    def __init__(self, names: List[str]) -> None:
        self.names = names
        self._writers = {name: _Writer() for name in names}
        self._round: List[str] = []  # violations by answers
        self.durable = self.never = 0  # answers of all rounds
        self.epoch = 0  # the latest one that a writer was told

    def given(self, name: str, number: int) -> None:
        """The writer has been told to append up to this number."""
        self._writers[name].given = max(self._writers[name].given, number)

    def is_durable(self, name: str, number: int, place: Place,
                   unknown: int) -> None:
        """The writer was told that this record is durable."""
        self.durable += 1
        self.epoch = max(self.epoch, place[0])
        self._answer(name, number, place, unknown)

    def is_never(self, name: str, number: int, unknown: int) -> None:
        """The writer was told that this record will never be in the log."""
        self.never += 1
        self._answer(name, number, None, unknown)

    def unanswered(self, name: str) -> int:
        """Returns how many records of the writer have no answer."""
        writer = self._writers[name]
        return writer.given - writer.answered

    @property
    def unknown(self) -> int:
        """How many outcomes were unknown for a while, so far."""
        return sum(writer.unknown for writer in self._writers.values())

    def end_round(self, log: List[Tuple[str, int, Place]],
                  is_clean: bool) -> None:
        """A round has ended. `log`: name, number and place of the records from
        the beginning of the round before on, in their order. `is_clean`: the
        primary has ended in good order. Afterwards the records of the round
        before may be cleaned. Errors: Violation."""
        violations, self._round = self._round, []
        for name, writer in self._writers.items():
            of_it = [(number, place) for one, number, place in log
                     if one == name]
            violations += _unresolved(name, writer)
            violations += _misplaced(name, writer, of_it)
            violations += _disordered(name, of_it)
            if is_clean and writer.unknown > writer.unknown_before:
                violations.append(
                    f"{name}: {writer.unknown - writer.unknown_before} outcomes "
                    "were unknown for a while, and the primary ended in good "
                    "order")
        violations += [f"{name} {number} at {place}: there is no such writer "
                       "" for name, number, place in log
                       if name not in self._writers]
        if violations:
            more = len(violations) - SHOWN_MAX
            raise Violation("\n".join(
                violations[:SHOWN_MAX]
                + ([f"and {more} violations more"] if more > 0 else [])))
        for writer in self._writers.values():
            writer.cleaned = writer.given_before
            writer.given_before = writer.given
            writer.unknown_before = writer.unknown
            for number in [number for number in writer.answers
                           if number <= writer.cleaned]:
                del writer.answers[number]

    def _answer(self, name: str, number: int, answer: Optional[Place],
                unknown: int) -> None:
        writer = self._writers[name]
        writer.unknown = max(writer.unknown, unknown)
        if not 1 <= number <= writer.given:
            self._round.append(f"{name} {number}: it has an answer, and was "
                               "never given")
        elif number <= writer.cleaned or number in writer.answers:
            self._round.append(f"{name} {number}: it has a second answer, "
                               f"{_told(answer)}")
        else:
            writer.answered += 1
            writer.answers[number] = answer


def _told(answer: Optional[Place]) -> str:
    if answer is None:
        return "never in the log"
    return "durable" if answer == NOWHERE else f"durable at {answer}"


def _unresolved(name: str, writer: _Writer) -> List[str]:
    """Records without an answer."""
    return [f"{name} {number}: unresolved: it was given, and nobody knows what "
            "became of it"
            for number in range(writer.cleaned + 1, writer.given + 1)
            if number not in writer.answers]


def _misplaced(name: str, writer: _Writer,
               log: List[Tuple[int, Place]]) -> List[str]:
    """Records that are not where they should be."""
    violations = []
    seen: Dict[int, Place] = {}
    for number, place in log:
        if number <= writer.cleaned:
            violations.append(
                f"{name} {number} at {place}: it came back: it was checked, and "
                "lies before the records that are read")
        elif number > writer.given:
            violations.append(f"{name} {number} at {place}: it was never given; "
                              f"the last one is {writer.given}")
        elif number in seen:
            violations.append(f"{name} {number}: doubled: at {seen[number]} and "
                              f"at {place}")
        elif writer.answers.get(number, NOWHERE) is None:
            violations.append(f"{name} {number} at {place}: resurrected: its "
                              "writer was told that it never will be in the "
                              "log")
        seen.setdefault(number, place)
    for number, answer in writer.answers.items():
        if answer is None:
            continue
        if number not in seen:
            violations.append(f"{name} {number}: lost: {_told(answer)}, and not "
                              "in the log")
        elif answer not in (NOWHERE, seen[number]):
            violations.append(f"{name} {number}: {_told(answer)}, and the log "
                              f"has it at {seen[number]}")
    return violations


def _disordered(name: str, log: List[Tuple[int, Place]]) -> List[str]:
    """Records in another order. A gap is a loss, which _misplaced sees: all
    numbers have answers."""
    return [f"{name} {later[0]} at {later[1]}: reordered: it is behind "
            f"{earlier[0]} at {earlier[1]}"
            for earlier, later in zip(log, log[1:]) if later[0] < earlier[0]]
