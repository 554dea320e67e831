# SPDX-License-Identifier: Apache-2.0
"""append_session: the requests of one client of a log that have no answer yet,
and what is to be sent next.

Idea: a request gets its sequence when it is sent for the first time, and keeps
it until it is answered, whatever connections come and go. When a connection is
lost, nothing is sent again before the client has resumed with a primary. That
primary says how far the log has the client's requests. All up to there are
answered. All above it were never appended and are sent again, so that each is
appended exactly once.

    NEW --opened--> READY --lost--> LOST --resumed--> READY
     ^                |               |
     +--- ended ------+---------------+

The invariants are those of api/client/append/append_session.h: ASN1 (answers
come once, and requests are sent in order), ASN2 (nothing is sent again under
the same resumption), ASN3 (answers are true) and ASN4 (bounded memory). One
thing differs: a request that was never sent has no sequence, so it can be
withdrawn and leaves no gap.

Thread safety: one thread at a time. Callbacks run inside the calls that bring
their answers, and may append.
"""

from __future__ import annotations

import bisect
import collections
import enum
from typing import (Callable, Deque, Dict, List, Mapping, NamedTuple,
                    Optional, Union)

from alpheus import errors
from alpheus.values import Appended, Durability, Payload, Place

# Gets the answer to one request.
Answer = Union[Appended, errors.AlpheusError]
AnswerCallback = Callable[[Answer], None]


class Limits(NamedTuple):
    """How much may have no answer (ASN4)."""

    unanswered_max: int = 1024  # requests; at most that of the service
    bytes_max: int = 8 << 20  # of payloads


class State(enum.Enum):
    """Says which calls are allowed now."""

    NEW = "there is no client yet: open one"
    READY = "requests may be sent"
    LOST = "the client must resume before anything is sent"
    ENDED = "nothing is sent any more"


class Request:
    """A request without an answer. Its members are the session's."""

    __slots__ = ("payload", "size", "callback", "starts", "sequence", "is_sent")

    def __init__(self, payload: Payload, size: int, callback: AnswerCallback,
                 starts: Callable[[], bool]) -> None:
        self.payload = payload
        self.size = size
        self.callback = callback
        self.starts = starts
        self.sequence = 0  # none yet
        self.is_sent = False


class Sending(NamedTuple):
    """Requests of consecutive sequences that are to be sent in one message."""

    first_sequence: int
    lowest_unanswered: int
    durability: Optional[Durability]  # of all payloads
    payloads: List[Payload]


class AppendSession:
    """Keeps requests until they are answered."""

    def __init__(self, limits: Limits = Limits()) -> None:
        self._limits = limits
        self.state = State.NEW
        self.client: Optional[Place] = None
        self.epoch = 0  # that requests carry
        self.last_epoch = 0  # the latest in which anything was sent
        self.resumption = 0  # that requests carry
        self._ended: Optional[Callable[[], errors.AlpheusError]] = None  # why
        self._next_sequence = 1
        self._bytes = 0
        self._queue: Deque[Request] = collections.deque()  # never sent
        self._numbered: Dict[int, Request] = {}  # in order
        self._set_back: List[int] = []  # sequences to be sent again, in order
        self.unknown_outcomes = 0  # so far; resolved by resumptions

    # --- For who appends ---

    def append(self, payload: Payload, callback: AnswerCallback,
               starts: Callable[[], bool] = lambda: True) -> Request:
        """Takes a request. A later take_to_send sends it.

        `starts` is asked right before the request is sent for the first time.
        If it says False the request is dropped without an answer.

        Errors: Busy (ASN4); InvalidRequest (no part); the error for which the
        session has ended.
        """
        if self._ended is not None:
            raise self._ended()
        if not payload.parts:
            raise errors.InvalidRequest("a request needs a payload")
        size = payload.size()
        if not self.has_room(size):
            raise errors.Busy(
                f"{self.unanswered} requests of {self._bytes} bytes have no "
                f"answer yet, at most {self._limits.unanswered_max} of "
                f"{self._limits.bytes_max} may have none. Append again after "
                "an answer")
        request = Request(payload, size, callback, starts)
        self._bytes += size
        self._queue.append(request)
        return request

    def has_room(self, size: int) -> bool:
        """Returns whether a request of so many bytes is taken. One that is
        larger than the limit goes alone: the service judges its size."""
        unanswered = self.unanswered
        return unanswered == 0 or (
            unanswered < self._limits.unanswered_max
            and self._bytes + size <= self._limits.bytes_max)

    def withdraw(self, request: Request) -> bool:
        """Drops a request that was never sent, without an answer. Returns
        whether it did so."""
        if request.sequence != 0:
            return False
        try:
            self._queue.remove(request)
        except ValueError:
            return False
        self._bytes -= request.size
        return True

    @property
    def unanswered(self) -> int:
        """How many requests have no answer."""
        return len(self._queue) + len(self._numbered)

    @property
    def is_awaiting(self) -> bool:
        """Whether requests are sent and have no answer."""
        return len(self._numbered) > len(self._set_back)

    @property
    def has_to_send(self) -> bool:
        """Whether take_to_send would look at a request."""
        return self.state is State.READY and bool(self._queue or self._set_back)

    # --- For whoever has the connection ---

    def opened(self, client: Place, epoch: int) -> None:
        """A client was opened, by a primary of this epoch. Requires: NEW."""
        assert self.state is State.NEW
        self.client = client
        self.epoch = self.last_epoch = epoch
        self.resumption = 0
        self.state = State.READY

    @property
    def lowest_unanswered(self) -> int:
        """The lowest sequence without an answer. A resumption tells it."""
        return next(iter(self._numbered), self._next_sequence)

    def lost(self, last_admitted: Optional[int] = None) -> None:
        """The connection was lost, or the primary takes no requests any more.
        `last_admitted`: the primary said that it has admitted nothing above
        this sequence on the connection. Those count as never sent then."""
        if self.state is not State.READY:
            return
        self.state = State.LOST
        for sequence in self._numbered:
            if last_admitted is not None and sequence > last_admitted:
                self.set_back(sequence)
        self.unknown_outcomes += len(self._numbered) - len(self._set_back)

    def resumed(self, epoch: int, resumption: int, last: int,
                places: Mapping[int, Place]) -> None:
        """The client has resumed with a primary of this epoch. Its log has the
        client's requests up to `last`, all durable, and it knows the places of
        some, by sequence. Requires: LOST."""
        assert self.state is State.LOST
        self.epoch = epoch
        self.last_epoch = max(self.last_epoch, epoch)
        self.resumption = resumption
        self.state = State.READY
        for request in self._numbered.values():
            request.is_sent = False
        self._set_back = list(self._numbered)
        for sequence in list(self._numbered):
            if sequence > last:
                break
            self._answer(sequence, Appended(places.get(sequence)))

    def end(self, unknown: Callable[[int], errors.AlpheusError],
            not_sent: Callable[[], errors.AlpheusError]) -> None:
        """Ends the session: by the caller; or because no primary knows the
        client any more, or it has ended, or others resume it. Requests that
        were sent get `unknown` of their sequence, and the rest `not_sent`.
        Both return a new error at each call."""
        if self.state is State.ENDED:
            return
        self.state = State.ENDED
        self._ended = not_sent
        for sequence, request in list(self._numbered.items()):
            self._answer(sequence,
                         unknown(sequence) if request.is_sent else not_sent())
        while self._queue:
            request = self._queue.popleft()
            self._bytes -= request.size
            request.callback(not_sent())

    def take_to_send(self, bytes_max: int) -> Optional[Sending]:
        """Takes requests to send, up to so many bytes and of one durability, at
        least one if any is left. Requires: READY. What comes back on this connection is passed to
        the calls below, until `lost`."""
        assert self.state is State.READY
        taken: List[Request] = []
        size = 0
        while True:
            request = self._next_to_send(taken)
            if request is None:
                break
            if taken and (request.payload.durability
                          is not taken[0].payload.durability):
                break
            size += request.size
            if taken and size > bytes_max:
                break
            if not self._take(request):
                size -= request.size
                continue
            taken.append(request)
        if not taken:
            return None
        return Sending(taken[0].sequence, self.lowest_unanswered,
                       taken[0].payload.durability,
                       [request.payload for request in taken])

    def done(self, first_sequence: int, count: int,
             first: Optional[Place]) -> None:
        """Requests of these sequences are as durable as asked for. `first` is
        the place of the first one; the others follow it."""
        for i in range(count):
            place = first and Place(first.epoch, first.lsn + i)
            self._answer(first_sequence + i, Appended(place))

    def refused(self, sequence: int, error: errors.AlpheusError) -> None:
        """A request was refused, and is answered with this error."""
        self._answer(sequence, error)

    def set_back(self, sequence: int) -> None:
        """A request was refused for now: there was no room, or a request before
        it was refused. It is sent again."""
        request = self._numbered.get(sequence)
        if request is not None and request.is_sent:
            request.is_sent = False
            bisect.insort(self._set_back, sequence)

    # --- Helpers ---

    def _next_to_send(self, taken: List[Request]) -> Optional[Request]:
        """Returns the request that follows those taken; None: no one does."""
        if self._set_back:
            sequence = self._set_back[0]
            # A sequence was answered between: the next message has the rest.
            if taken and sequence != taken[-1].sequence + 1:
                return None
            return self._numbered[sequence]
        if not self._queue:
            return None
        if taken and taken[-1].sequence + 1 != self._next_sequence:
            return None
        return self._queue[0]

    def _take(self, request: Request) -> bool:
        """Takes this request out of what is to be sent. Returns whether it is
        to be sent still."""
        if request.sequence != 0:
            self._set_back.pop(0)
        else:
            self._queue.popleft()
            if not request.starts():
                self._bytes -= request.size
                return False
            request.sequence = self._next_sequence
            self._next_sequence += 1
            self._numbered[request.sequence] = request
        request.is_sent = True
        return True

    def _answer(self, sequence: int, answer: Answer) -> None:
        """Answers a request and drops it. Does nothing if it is answered
        already."""
        request = self._numbered.pop(sequence, None)
        if request is None:
            return
        self._bytes -= request.size
        if not request.is_sent:
            at = bisect.bisect_left(self._set_back, sequence)
            if self._set_back[at:at + 1] == [sequence]:
                del self._set_back[at]
        request.callback(answer)
