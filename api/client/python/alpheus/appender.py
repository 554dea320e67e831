# SPDX-License-Identifier: Apache-2.0
"""appender: brings requests to the primary, and answers back.

Idea: a thread of the appender finds the primary, begins or resumes the client
there, and keeps one stream to it. When the stream ends it finds the next
primary. A request that was sent is sent again only after a primary has said
that it was never appended. So callers see no fail-over, but for the time that
it takes. The thread begins with the first request: who only reads is no client
of the log.

    caller         append -> session (lock) -> future
    gRPC's thread  _Stream.__next__: session -> message -> socket
    own thread     answers -> session -> futures, and their callbacks

Answers follow append_session.py. Callbacks of futures run without a lock, on
the appender's thread, one at a time (LGC1 and LGC2 in
api/client/grpc/log_client.h).

Thread safety: public members by many threads.
"""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import os
import random
import threading
import time
from typing import Any, Deque, Optional, Tuple, Type

import grpc

from alpheus import errors, wire
from alpheus.append_session import Answer, AppendSession, State
from alpheus.backoff import Backoff
from alpheus.nodes import Nodes
from alpheus.options import LogClientOptions
from alpheus.v1 import log_service_pb2 as pb
from alpheus.v1 import log_service_pb2_grpc as pb_grpc
from alpheus.values import Appended, Payload
from alpheus.watchdog import Watchdog

# So often a client is taken over by others before it gives up. Its own lost
# message may do so once.
_SUPERSEDED_MAX = 3
# The service takes no larger message; a node would end the stream. The rest is
# room for what stands around payloads.
_PAYLOAD_BYTES_MAX = (16 << 20) - (64 << 10)


class AppendFuture(concurrent.futures.Future):  # of Appended
    """The answer to one request: an Appended, or an AlpheusError.

    `cancel` succeeds as long as the request was never sent: it is not in the
    log then, and never will be. Callbacks run on the client's thread, and must
    not block.
    """

    def __init__(self, appender: Appender) -> None:
        super().__init__()
        self._appender = appender
        self._request: Any = None  # the session's
        self._has_begun = False

    def cancel(self) -> bool:
        """Withdraws the request, unless it was sent. Returns whether it is
        cancelled."""
        if not super().cancel():
            return False
        self._appender.withdraw(self)
        return True

    def begin(self) -> bool:
        """The request is sent now. Returns False if it was cancelled."""
        self._has_begun = self.set_running_or_notify_cancel()
        return self._has_begun

    def resolve(self, answer: Answer) -> None:
        """Gives the answer, and calls the callbacks."""
        if not self._has_begun and not self.begin():
            return
        if isinstance(answer, Appended):
            self.set_result(answer)
        else:
            self.set_exception(answer)


class Appender:
    """Requests of one client of a log, and the thread that brings them."""

    def __init__(self, nodes: Nodes, options: LogClientOptions,
                 watchdog: Watchdog) -> None:
        self._nodes = nodes
        self._options = options
        self._watchdog = watchdog
        self._search = nodes.new_search()  # of the thread
        self._key = os.urandom(16)  # by which the client begins
        self._stream_backoff = Backoff(options.rests, random.random)
        self._room_backoff = Backoff(options.room_rests, random.random)
        self._lock = threading.Lock()  # guards all below
        self._answered = threading.Condition(self._lock)  # or it ends
        self._sendable = threading.Condition(self._lock)  # or it ends
        self._session = AppendSession(options.limits)
        self._thread: Optional[threading.Thread] = None
        self._stream: Optional[_Stream] = None
        self._asking: Any = None  # a call that is under way
        self._is_ending = False
        self._superseded = 0  # since the last answer
        self._no_room_until = 0.0  # nothing is sent before
        self._answers: Deque[Tuple[AppendFuture, Answer]] = collections.deque()
        self._unheard = 0  # answers whose callbacks have not run to their end
        self._last_said = "no node was asked"

    # --- For callers ---

    def append(self, payload: Payload,
               timeout: Optional[float]) -> AppendFuture:
        """Takes a request. Waits while too much has no answer, for `timeout`
        seconds at most, but never on the thread that runs callbacks. Errors:
        Busy, InvalidRequest, Closed, and that for which the client has
        ended."""
        size = payload.size()
        if size > _PAYLOAD_BYTES_MAX:
            raise errors.InvalidRequest(
                f"a request of {size} bytes: the service takes at most "
                f"{_PAYLOAD_BYTES_MAX}, and a log often less "
                "(payload_bytes_max of its status)")
        future = AppendFuture(self)
        with self._lock:
            if self._is_on_thread():
                timeout = 0.0
            self._answered.wait_for(
                lambda: (self._session.has_room(size)
                         or self._session.state is State.ENDED), timeout)
            future._request = self._session.append(
                payload, functools.partial(self._keep, future), future.begin)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="alpheus-appender", daemon=True)
                self._thread.start()
            self._sendable.notify()
        return future

    @property
    def unknown_outcomes(self) -> int:
        """How many outcomes were unknown for a while, so far."""
        with self._lock:
            return self._session.unknown_outcomes

    def withdraw(self, future: AppendFuture) -> None:
        """Drops the request of a future that was cancelled."""
        with self._lock:
            if self._session.withdraw(future._request):
                future.begin()  # whoever waits for several futures is told
            self._answered.notify_all()

    def flush(self, timeout: Optional[float]) -> None:
        """Waits until all requests have their answers, and their callbacks
        have run. Errors: NotFinished."""
        with self._lock:
            if self._is_on_thread():
                raise RuntimeError("a callback waits for itself: call flush "
                                   "on another thread")
            if not self._answered.wait_for(self._has_no_request, timeout):
                raise errors.NotFinished(
                    f"log {self._options.log}: {self._session.unanswered} "
                    f"requests have no answer after {timeout} s; they go on. "
                    f"Last: {self._last_said}")

    def stop(self) -> None:
        """Ends. Requests that were never sent get NotAppended, and those that
        have no answer OutcomeUnknown. A client that has all its answers is
        ended in the log, too, if its primary answers. Blocks for
        answer_seconds, and for as long as callbacks do."""
        with self._lock:
            self._is_ending = True
            if self._asking is not None:
                self._asking.cancel()
            if self._stream is not None:
                if self._has_no_request():
                    self._stream.end()
                else:
                    self._stream.cancel()
            self._answered.notify_all()
            self._sendable.notify_all()
            thread = None if self._is_on_thread() else self._thread
        if thread is not None:
            thread.join()
        with self._lock:
            self._end("the client was closed", errors.Closed)
        if thread is not None or self._thread is None:
            self._run_callbacks()

    # --- The thread ---

    def _run(self) -> None:
        try:
            while self._await_requests():
                address = self._find_primary()
                self._run_callbacks()
                if not address:
                    break
                self._serve(address)
                self._run_callbacks()
            self._close_client()
        except errors.Closed:
            pass
        except BaseException as error:  # a fault of this package
            with self._lock:
                self._end(f"the client's thread has failed: {error!r}",
                          errors.NotAppended)
            self._run_callbacks()
            raise

    def _await_requests(self) -> bool:
        """Waits for a request. Returns whether the thread goes on."""
        with self._lock:
            self._sendable.wait_for(
                lambda: self._is_ending or self._session.unanswered > 0)
            return (not self._is_ending
                    and self._session.state is not State.ENDED)

    def _find_primary(self) -> str:
        """Finds a primary, and begins or resumes there. Returns its address;
        empty: the client ends."""
        while True:
            now = time.monotonic()
            step = self._search.next(now)
            if not self._rest(step.not_before - now):
                return ""
            try:
                self._begin(self._nodes.stub(step.address))
            except grpc.RpcError as error:
                said = wire.tell(error, step.address)
                with self._lock:
                    self._last_said = said
                    if wire.is_final(error):
                        self._end(said, _kind_of(error))
                        return ""
                self._search.not_primary(self._nodes.hint_of(error))
                continue
            self._search.found()
            self._nodes.found(step.address)
            with self._lock:
                return "" if self._session.state is State.ENDED \
                    else step.address

    def _rest(self, seconds: float) -> bool:
        """Rests. Returns whether the thread goes on."""
        with self._lock:
            self._sendable.wait_for(lambda: self._is_ending, max(0.0, seconds))
            return not self._is_ending

    def _ask(self, method: Any, request: Any) -> Any:
        """Calls a node. `stop` cancels it. Errors: grpc.RpcError."""
        with self._lock:
            call = method.future(request, timeout=self._options.answer_seconds)
            self._asking = call
            if self._is_ending:
                call.cancel()
        try:
            return call.result()
        except grpc.FutureCancelledError as error:
            raise errors.Closed("the client is closed") from error
        finally:
            with self._lock:
                self._asking = None

    def _begin(self, stub: pb_grpc.LogServiceStub) -> None:
        with self._lock:
            self._session.lost()
            is_new = self._session.state is State.NEW
        if is_new:
            self._open(stub)
        else:
            self._resume(stub)

    def _open(self, stub: pb_grpc.LogServiceStub) -> None:
        # Each time the same key: an answer may have been lost.
        opened = self._ask(stub.OpenClient,
                           pb.OpenClientRequest(log=self._options.log,
                                                key=self._key))
        with self._lock:
            self._session.opened(wire.place_of(opened.client), opened.epoch)

    def _resume(self, stub: pb_grpc.LogServiceStub) -> None:
        with self._lock:
            assert self._session.client is not None
            request = pb.ResumeClientRequest(
                log=self._options.log,
                client=wire.message_of(self._session.client),
                lowest_unanswered=self._session.lowest_unanswered,
                last_epoch=self._session.last_epoch)
        resumed = self._ask(stub.ResumeClient, request)
        with self._lock:
            self._session.resumed(resumed.epoch, resumed.resumption,
                                  resumed.last_sequence,
                                  wire.places_of(resumed.places))
            if resumed.ended:
                self._end("the client was ended by another process",
                          errors.NotAppended)

    def _serve(self, address: str) -> None:
        """Appends by one stream, until it ends."""
        with self._lock:
            stream = _Stream(self)
            stream.call = self._nodes.stub(address).AppendStream(stream)
            self._stream = stream
            if self._is_ending:
                stream.cancel()
        watch = self._watchdog.watch(stream.check)
        has_answers = False
        try:
            for answers in stream.call:
                with self._lock:
                    has_answers = self._take(stream, answers) or has_answers
                self._run_callbacks()
        except grpc.RpcError as error:
            with self._lock:
                self._last_said = wire.tell(error, address)
        finally:
            self._watchdog.forget(watch)
            with self._lock:
                stream.end()
                self._stream = None
                self._session.lost(stream.last_admitted)
                self._answered.notify_all()
                has_stalled = stream.has_stalled
        if has_stalled:
            self._search.not_primary()
        if has_answers:
            self._stream_backoff.succeeded()
        else:
            # It was found, and is of no use: it must not keep a core busy.
            self._rest(self._stream_backoff.rest())

    def _close_client(self) -> None:
        """Ends the client in the log, so that it needs no room there. If that
        fails the log keeps a few bytes of it."""
        with self._lock:
            client = self._session.client
            is_idle = (self._session.state is State.LOST
                       and self._session.unanswered == 0)
            epoch = self._session.epoch
        address = self._nodes.primary
        if client is None or not is_idle or not address:
            return
        try:
            self._nodes.stub(address).CloseClient(
                pb.CloseClientRequest(log=self._options.log, epoch=epoch,
                                      client=wire.message_of(client)),
                timeout=self._options.answer_seconds)
        except grpc.RpcError:
            pass  # as the comment of this function says

    # --- What a stream brings; under the lock ---

    def _take(self, stream: _Stream, answers: pb.AppendStreamResponse) -> bool:
        """Takes a message of answers. Returns whether a request is done."""
        stream.heard()
        for run in answers.done:
            self._session.done(run.first_sequence, run.count,
                               wire.first_of(run))
            self._superseded = 0
        for refusal in answers.refused:
            if not self._take_refusal(refusal):
                stream.cancel()
                break
        if answers.done and self._no_room_until <= time.monotonic():
            self._room_backoff.succeeded()
        if answers.HasField("last_admitted"):
            stream.last_admitted = answers.last_admitted
            stream.end()
        self._answered.notify_all()
        self._sendable.notify()
        return bool(answers.done)

    def _take_refusal(self, refusal: pb.AppendStreamResponse.Refusal) -> bool:
        """Takes a refusal. Returns whether the stream is of use still."""
        kind = refusal.error.WhichOneof("kind")
        if refusal.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]:
            now = time.monotonic()
            self._last_said = refusal.message
            if self._no_room_until <= now:
                self._no_room_until = now + self._room_backoff.rest()
            self._session.set_back(refusal.sequence)
            return True
        if kind == "out_of_order":
            self._session.set_back(refusal.sequence)
            return True
        if kind == "superseded":
            self._superseded += 1
            if self._superseded > _SUPERSEDED_MAX:
                self._end("another process goes on with this client",
                          errors.NotAppended)
        # Another primary, or another resumption.
        if kind in ("superseded", "wrong_epoch", "not_primary"):
            self._last_said = refusal.message
            return False
        self._session.refused(refusal.sequence, wire.error_of_refusal(refusal))
        return True

    def _keep(self, future: AppendFuture, answer: Answer) -> None:
        """Keeps an answer for _run_callbacks."""
        self._unheard += 1
        self._answers.append((future, answer))

    def _run_callbacks(self) -> None:
        """Resolves futures whose requests were answered (LGC2)."""
        while True:
            with self._lock:
                answers, self._answers = self._answers, collections.deque()
                if not answers:
                    return
            for future, answer in answers:
                future.resolve(answer)
            with self._lock:
                self._unheard -= len(answers)
                self._answered.notify_all()

    def _end(self, why: str, kind: Type[errors.NotAppended]) -> None:
        """Ends the session: nothing is sent any more. Lock held."""
        self._session.end(
            lambda sequence: errors.OutcomeUnknown(
                f"request {sequence} may be in the log or not: {why}",
                sequence=sequence),
            lambda: kind(f"nothing was appended: {why}"))
        self._answered.notify_all()
        self._sendable.notify_all()

    def _has_no_request(self) -> bool:
        return self._session.unanswered == 0 and self._unheard == 0

    def _is_on_thread(self) -> bool:
        return threading.current_thread() is self._thread


class _Stream:
    """The requests of a stream, which gRPC asks for on a thread of its own.
    All members but `call`, `__next__` and `check` need the appender's lock."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        session = appender._session
        assert session.client is not None
        self._begin: Optional[pb.AppendStreamRequest] = pb.AppendStreamRequest(
            begin=pb.AppendStreamRequest.Begin(
                log=appender._options.log, epoch=session.epoch,
                client=wire.message_of(session.client),
                durability=wire.durability_of(appender._options.durability),
                resumption=session.resumption))
        self._is_ending = False
        self._ended_at = 0.0
        self._heard_at = time.monotonic()
        self.has_stalled = False
        self.last_admitted: Optional[int] = None  # as the primary has said
        self.call: Any = None

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> pb.AppendStreamRequest:
        """Returns the next message, once there is something to send."""
        appender = self._appender
        with appender._lock:
            if self._begin is not None:
                begin, self._begin = self._begin, None
                return begin
            sending = None
            while sending is None:
                if self._is_ending:
                    raise StopIteration
                session = appender._session
                now = time.monotonic()
                rest = appender._no_room_until - now
                if not session.has_to_send:
                    appender._sendable.wait()
                elif rest > 0:
                    appender._sendable.wait(rest)
                else:
                    if not session.is_awaiting:
                        self._heard_at = now
                    sending = session.take_to_send(
                        appender._options.message_bytes_max)
        message = pb.AppendStreamRequest()
        first = message.requests.first
        first.sequence = sending.first_sequence
        first.lowest_unanswered = sending.lowest_unanswered
        if sending.durability is not None:
            message.requests.durability = wire.durability_of(
                sending.durability)
        for payload in sending.payloads:
            wire.set_payload(payload, message.requests.payloads.add())
        return message

    def heard(self) -> None:
        """The node has said something."""
        self._heard_at = time.monotonic()

    def end(self) -> None:
        """Sends no more; the primary ends the stream then."""
        if not self._is_ending:
            self._is_ending = True
            self._ended_at = time.monotonic()
        self._appender._sendable.notify_all()

    def cancel(self) -> None:
        """Ends the stream at once."""
        self.call.cancel()
        self.end()

    def check(self, now: float) -> None:
        """Ends the stream of a node that owes an answer, or the stream's end,
        and says nothing."""
        appender = self._appender
        options = appender._options
        with appender._lock:
            if self._is_ending:
                if now - self._ended_at > options.answer_seconds:
                    self.cancel()
            elif (appender._session.is_awaiting
                  and now - self._heard_at > options.stall_seconds):
                self.has_stalled = True
                self.cancel()


def _kind_of(error: grpc.RpcError) -> Type[errors.NotAppended]:
    """Returns the class of the errors of requests that were never sent."""
    if error.code() is grpc.StatusCode.NOT_FOUND:
        return errors.NotFound
    if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
        return errors.InvalidRequest
    if error.code() in (grpc.StatusCode.UNAUTHENTICATED,
                        grpc.StatusCode.PERMISSION_DENIED):
        return errors.NotAllowed
    return errors.NotAppended
