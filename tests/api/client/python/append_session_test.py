#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests without an answer: as tests/api/client/append of the client in C++.

usage: append_session_test.py, with the built package in PYTHONPATH
"""

import random
import unittest

from alpheus import errors
from alpheus.append_session import AppendSession, Limits, State
from alpheus.values import Appended, Durability, Payload, Place


class AppendSessionTest(unittest.TestCase):

    def setUp(self):
        self.session = AppendSession(Limits(unanswered_max=5, bytes_max=10))
        self.answers = {}

    def append(self, text, **more):
        return self.session.append(
            Payload((text.encode(),)),
            lambda answer: self.answers.setdefault(text, []).append(answer),
            **more)

    def sent(self, bytes_max=1000):
        """Takes what is to be sent, and returns it joined."""
        sending = self.session.take_to_send(bytes_max)
        if sending is None:
            return ""
        return b"".join(p.parts[0] for p in sending.payloads).decode()

    def open(self):
        self.session.opened(Place(5, 7), 5)

    def place_of(self, text):
        (answer,) = self.answers[text]
        return answer.place

    def test_requests_are_sent_in_their_order_once_a_client_is_open(self):
        self.append("a")
        self.append("b")
        self.assertIs(self.session.state, State.NEW)
        self.assertFalse(self.session.has_to_send)
        self.open()
        self.assertTrue(self.session.has_to_send)
        sending = self.session.take_to_send(1000)
        self.assertEqual(sending.first_sequence, 1)
        self.assertEqual(sending.lowest_unanswered, 1)
        self.assertEqual(len(sending.payloads), 2)
        self.assertFalse(self.session.has_to_send)
        self.assertTrue(self.session.is_awaiting)

    def test_a_message_has_one_durability(self):
        for text, durability in (("a", None), ("b", None),
                                 ("c", Durability.ALL),
                                 ("d", Durability.ACCEPTED),
                                 ("e", Durability.ACCEPTED)):
            self.session.append(
                Payload((text.encode(),), durability=durability),
                lambda answer: None)
        self.open()
        for text, durability in (("ab", None), ("c", Durability.ALL),
                                 ("de", Durability.ACCEPTED)):
            sending = self.session.take_to_send(1000)
            self.assertEqual(
                b"".join(p.parts[0] for p in sending.payloads).decode(), text)
            self.assertIs(sending.durability, durability)
        self.assertFalse(self.session.has_to_send)

    def test_answers_have_places(self):
        self.append("a")
        self.append("b")
        self.open()
        self.sent()
        self.session.done(1, 2, Place(5, 8))
        self.assertEqual(self.place_of("a"), Place(5, 8))
        self.assertEqual(self.place_of("b"), Place(5, 9))
        self.assertEqual(self.session.unanswered, 0)
        self.assertEqual(self.session.lowest_unanswered, 3)
        self.assertFalse(self.session.is_awaiting)

    def test_messages_have_room_for_so_many_bytes(self):
        for text in ("aaa", "bbb", "c"):
            self.append(text)
        self.open()
        self.assertEqual(self.sent(4), "aaa")
        self.assertEqual(self.sent(4), "bbbc")

    # ASN1.
    def test_second_answer_is_dropped(self):
        self.append("a")
        self.open()
        self.sent()
        self.session.done(1, 1, Place(5, 8))
        self.session.done(1, 1, Place(5, 8))
        self.session.refused(1, errors.NotAppended("late"))
        self.assertEqual(self.place_of("a"), Place(5, 8))

    # ASN4.
    def test_no_more_is_kept_than_allowed(self):
        self.append("aaaaaaaa")
        with self.assertRaises(errors.Busy):
            self.append("bbb")
        for text in ("b", "c", "", ""):
            self.append(text)
        with self.assertRaises(errors.Busy):
            self.append("")
        with self.assertRaises(errors.InvalidRequest):
            self.session.append(Payload(()), print)
        self.open()
        self.sent()
        self.session.done(1, 1, None)
        self.append("dddddddd")

    def test_request_larger_than_the_limit_goes_alone(self):
        self.append("a" * 100)
        self.open()
        self.assertEqual(self.sent(4), "a" * 100)

    # ASN2, ASN3.
    def test_nothing_is_sent_again_before_the_client_has_resumed(self):
        for text in ("a", "b", "c"):
            self.append(text)
        self.open()
        self.sent()
        self.session.lost()
        self.assertIs(self.session.state, State.LOST)
        self.append("d")
        self.assertFalse(self.session.has_to_send)
        self.assertEqual(self.session.last_epoch, 5)
        self.session.resumed(6, 3, 2, {2: Place(5, 9)})
        self.assertIsNone(self.place_of("a"))
        self.assertEqual(self.place_of("b"), Place(5, 9))
        self.assertNotIn("c", self.answers)
        sending = self.session.take_to_send(1000)
        self.assertEqual(sending.first_sequence, 3)
        self.assertEqual(sending.lowest_unanswered, 3)
        self.assertEqual([p.parts[0] for p in sending.payloads], [b"c", b"d"])
        self.assertEqual(self.session.resumption, 3)
        self.assertEqual(self.session.epoch, 6)

    def test_outcomes_are_unknown_unless_the_primary_says_what_it_admitted(
            self):
        for text in ("a", "b", "c"):
            self.append(text)
        self.open()
        self.sent()
        self.append("d")  # never sent
        self.session.done(1, 1, Place(5, 8))
        self.session.lost()
        self.session.lost()
        self.assertEqual(self.session.unknown_outcomes, 2)
        self.session.resumed(6, 1, 1, {})
        self.sent()
        self.session.lost(1)
        self.assertEqual(self.session.unknown_outcomes, 2)
        self.session.resumed(6, 2, 1, {})
        self.sent()
        self.session.lost(3)  # it was to answer 2 and 3
        self.assertEqual(self.session.unknown_outcomes, 4)

    def test_requests_that_were_not_admitted_are_not_unknown_at_the_end(self):
        for text in ("a", "b", "c"):
            self.append(text)
        self.open()
        self.sent()
        self.session.lost(2)
        self.session.end(
            lambda sequence: errors.OutcomeUnknown("", "", sequence),
            lambda: errors.NotAllowed("not sent"))
        self.assertIsInstance(self.answers["b"][0], errors.OutcomeUnknown)
        self.assertIsInstance(self.answers["c"][0], errors.NotAllowed)

    def test_refusal_is_an_answer(self):
        self.append("a")
        self.append("b")
        self.open()
        self.sent()
        self.session.refused(1, errors.ConditionFailed("another tail"))
        self.assertIsInstance(self.answers["a"][0], errors.ConditionFailed)
        self.session.set_back(2)
        self.session.set_back(2)
        sending = self.session.take_to_send(1000)
        self.assertEqual(sending.first_sequence, 2)
        self.assertEqual(sending.lowest_unanswered, 2)
        self.assertEqual(len(sending.payloads), 1)

    # One between was answered: a message has consecutive sequences.
    def test_gap_ends_a_message(self):
        for text in ("a", "b", "c"):
            self.append(text)
        self.open()
        self.sent()
        self.append("d")
        self.session.refused(2, errors.InvalidRequest("too large"))
        self.session.set_back(3)
        self.session.set_back(1)
        self.assertEqual(self.sent(), "a")
        self.assertEqual(self.sent(), "cd")

    def test_requests_that_were_never_sent_are_not_unknown_at_the_end(self):
        self.append("a")
        self.open()
        self.sent()
        self.append("b")
        self.session.end(
            lambda sequence: errors.OutcomeUnknown("", "", sequence),
            lambda: errors.Closed("not sent"))
        self.assertIsInstance(self.answers["a"][0], errors.OutcomeUnknown)
        self.assertEqual(self.answers["a"][0].sequence, 1)
        self.assertIsInstance(self.answers["b"][0], errors.NotAppended)
        with self.assertRaises(errors.Closed):
            self.append("c")

    # It was not in the log when the client resumed, and nothing was sent since.
    def test_request_that_is_to_be_sent_again_is_not_unknown_at_the_end(self):
        self.append("a")
        self.open()
        self.sent()
        self.session.lost()
        self.session.resumed(6, 1, 0, {})
        self.session.end(lambda sequence: errors.OutcomeUnknown(""),
                         lambda: errors.Closed("not sent"))
        self.assertIsInstance(self.answers["a"][0], errors.NotAppended)

    def test_callback_may_append(self):
        self.session.append(Payload((b"a",)), lambda _: self.append("b"))
        self.open()
        self.sent()
        self.session.lost()
        self.session.resumed(5, 1, 1, {})
        self.assertEqual(self.session.unanswered, 1)
        self.assertEqual(self.sent(), "b")

    def test_request_that_was_never_sent_can_be_withdrawn(self):
        first = self.append("a")
        second = self.append("b")
        self.assertTrue(self.session.withdraw(first))
        self.assertFalse(self.session.withdraw(first))
        self.open()
        self.assertEqual(self.sent(), "b")
        self.assertFalse(self.session.withdraw(second))
        self.session.done(1, 1, Place(5, 8))
        self.assertEqual(self.place_of("b"), Place(5, 8))
        self.assertNotIn("a", self.answers)
        self.append("cccccccccc")  # all bytes are free again

    def test_request_that_does_not_start_is_dropped(self):
        self.append("a", starts=lambda: False)
        self.append("b", starts=lambda: True)
        self.append("c", starts=lambda: False)
        self.open()
        self.assertEqual(self.sent(), "b")
        self.assertEqual(self.session.unanswered, 1)
        self.append("d", starts=lambda: False)
        self.assertIsNone(self.session.take_to_send(10))


class _Primary:
    """A primary that takes what docs/design/service.md says."""

    def __init__(self, epoch, log):
        self.epoch = epoch
        self.log = log  # of (sequence, payload)
        self.resumption = 0

    def last(self):
        return self.log[-1][0] if self.log else 0

    def judge(self, epoch, resumption, sequence, lowest, payload):
        """Returns whether it is done, refused for good, or set back; or None:
        the connection is of no use."""
        if epoch != self.epoch or resumption != self.resumption:
            return None
        if sequence <= self.last():
            return "done"
        if sequence > max(self.last() + 1, lowest):
            return "set_back"
        if payload.expected_lsn not in (None, len(self.log)):
            return "refused"
        self.log.append((sequence, payload.parts[0]))
        return "done"


class _Network:
    """A session, and a primary that it loses now and then. Messages arrive
    late, also those of connections that were lost."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.session = AppendSession(Limits(unanswered_max=8))
        self.primary = _Primary(1, [])
        self.answers = {}
        self.appended = 0
        self.to_primary = []  # (connection, messages)
        self.to_client = []
        self.connection = 0

    def step(self, may_fail):
        choice = self.random.randrange(12 if may_fail else 9)
        if choice < 2:
            self.append()
        elif choice < 5:
            self.send()
        elif choice < 7:
            self.arrive()
        elif choice < 9:
            self.receive()
        elif choice < 11:
            self.connection += 1
            self.session.lost()
        else:
            self.connection += 1
            self.session.lost()
            self.primary = _Primary(self.primary.epoch + 1, self.primary.log)

    def append(self):
        if not self.session.has_room(1):
            return
        number = self.appended = self.appended + 1
        expected = self.random.randrange(30) if number % 5 == 0 else None
        self.session.append(
            Payload((str(number).encode(),), 0, expected),
            lambda answer: self.answers.setdefault(number, []).append(answer))

    def send(self):
        session, primary = self.session, self.primary
        if session.state is State.NEW:
            session.opened(Place(1, 1), primary.epoch)
        elif session.state is State.LOST:
            # Requests sent before are refused from now on.
            primary.resumption += 1
            session.resumed(primary.epoch, primary.resumption, primary.last(),
                            {})
        elif session.has_to_send:
            sending = session.take_to_send(self.random.randrange(1, 6))
            self.to_primary.append((self.connection, primary, session.epoch,
                                    session.resumption, sending))

    def arrive(self):
        if not self.to_primary:
            return
        # In order on a connection; those that were lost, at any time.
        at = self.random.randrange(len(self.to_primary))
        at = [m[0] for m in self.to_primary].index(self.to_primary[at][0])
        connection, primary, epoch, resumption, sending = \
            self.to_primary.pop(at)
        if primary is not self.primary:
            return  # deposed: it makes nothing durable any more
        self.to_client.append((connection, [
            (sending.first_sequence + i, primary.judge(
                epoch, resumption, sending.first_sequence + i,
                sending.lowest_unanswered, payload))
            for i, payload in enumerate(sending.payloads)]))

    def receive(self):
        if not self.to_client:
            return
        connection, verdicts = self.to_client.pop(0)
        if connection != self.connection:
            return
        for sequence, verdict in verdicts:
            if verdict == "done":
                self.session.done(sequence, 1, Place(1, sequence))
            elif verdict == "refused":
                self.session.refused(sequence, errors.ConditionFailed(""))
            elif verdict == "set_back":
                self.session.set_back(sequence)
            else:
                raise AssertionError("a request with an old number was sent "
                                     "on the newest connection")


class AppendSessionChanceTest(unittest.TestCase):

    # ASN1, ASN2, ASN3: each request is in the log once at most, in order, and
    # each answer is true.
    def test_answers_are_true_whatever_is_lost(self):
        for seed in range(300):
            with self.subTest(seed=seed):
                network = _Network(seed)
                for _ in range(300):
                    network.step(may_fail=True)
                steps = 0
                while network.session.unanswered > 0:
                    network.step(may_fail=False)
                    if not network.session.has_room(1):
                        for turn in (network.send, network.arrive,
                                     network.receive):
                            turn()
                    steps += 1
                    if steps > 300:  # no new ones
                        network.append = lambda: None
                    self.assertLess(steps, 20_000)
                logged = [int(payload) for _, payload in network.primary.log]
                self.assertEqual(logged, sorted(set(logged)))
                self.assertEqual(len(network.answers), network.appended)
                for number, answers in network.answers.items():
                    (answer,) = answers
                    self.assertEqual(isinstance(answer, Appended),
                                     number in logged)


if __name__ == "__main__":
    unittest.main()
