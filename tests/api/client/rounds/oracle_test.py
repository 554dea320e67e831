#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle of the fail-over rounds sees each violation in a made-up history.

usage: oracle_test.py [UNITTEST ARGUMENTS]
"""

import unittest

from oracle import NOWHERE, Oracle, Violation


class OracleTest(unittest.TestCase):

    def setUp(self):
        self.oracle = Oracle(["a", "b"])
        self.log = []
        self.lsn = 0

    def append(self, name, number, told=True, unknown=0):
        """A record is appended; its writer is told where, unless `told` is
        another place."""
        self.oracle.given(name, number)
        self.lsn += 1
        place = (1, self.lsn)
        self.log.append((name, number, place))
        if told is not False:
            self.oracle.is_durable(name, number,
                                   place if told is True else told, unknown)

    def begin(self):
        """A round without a violation."""
        for number in (1, 2, 3):
            self.append("a", number)
            self.append("b", number)

    def end_round(self, is_clean=False):
        self.oracle.end_round(self.log, is_clean)

    def check(self, pattern, is_clean=False):
        with self.assertRaisesRegex(Violation, pattern):
            self.end_round(is_clean)

    def test_log_that_is_what_writers_were_told_is_good(self):
        self.begin()
        self.oracle.given("a", 4)
        self.oracle.is_never("a", 4, 1)
        self.append("a", 5, told=NOWHERE, unknown=1)
        self.end_round()
        self.append("b", 4)
        self.end_round(is_clean=True)
        # All but what the last two rounds have may be cleaned.
        self.log = self.log[-1:]
        self.append("a", 6, unknown=1)
        self.end_round(is_clean=True)
        self.assertEqual((self.oracle.durable, self.oracle.never), (9, 1))
        self.assertEqual(self.oracle.unknown, 1)
        self.assertEqual(self.oracle.epoch, 1)

    def test_lost(self):
        self.begin()
        del self.log[2]
        self.check(r"^a 2: lost: durable at \(1, 3\)[^\n]*$")

    def test_lost_and_nobody_knew_where_it_was(self):
        self.begin()
        self.append("a", 4, told=NOWHERE)
        self.log.pop()
        self.check("^a 4: lost: durable, and")

    def test_lost_one_round_later(self):
        self.begin()
        self.end_round()
        del self.log[2]
        self.append("a", 4)
        self.check("^a 2: lost")

    def test_all_are_lost(self):
        self.begin()
        self.log.clear()
        self.check("a 1: lost(.|\n)*b 3: lost")

    def test_moved(self):
        self.begin()
        self.append("a", 4, told=(1, 6))
        self.check(r"^a 4: durable at \(1, 6\), and the log has it at \(1, 7\)")

    def test_place_of_another_epoch_is_another_place(self):
        self.begin()
        self.append("a", 4, told=(2, 7))
        self.check("^a 4: durable at")

    def test_doubled(self):
        self.begin()
        self.append("a", 4)
        self.append("a", 4, told=False)
        self.check(r"^a 4: doubled: at \(1, 7\) and at \(1, 8\)[^\n]*$")

    def test_doubled_one_round_later(self):
        self.begin()
        self.end_round()
        self.append("a", 4)
        self.append("a", 3, told=False)
        self.check("a 3: doubled(.|\n)*a 3 at .*: reordered")

    def test_doubled_when_the_first_one_is_cleaned(self):
        self.begin()
        self.end_round()
        self.end_round()
        self.log.clear()
        self.append("b", 3, told=False)
        self.check("^b 3 at .*: it came back")

    def test_reordered(self):
        self.begin()
        self.oracle.given("a", 5)
        self.append("a", 5)
        self.append("a", 4)
        self.check(r"^a 4 at \(1, 8\): reordered: it is behind 5 at \(1, 7\)"
                   r"[^\n]*$")

    def test_resurrected(self):
        self.begin()
        self.append("a", 4, told=False)
        self.oracle.is_never("a", 4, 0)
        self.check("^a 4 at .*: resurrected")

    def test_resurrected_one_round_later(self):
        self.begin()
        self.oracle.given("a", 4)
        self.oracle.is_never("a", 4, 0)
        self.end_round()
        self.append("a", 5)
        self.log.insert(-1, ("a", 4, (1, 0)))
        self.check("^a 4 at .*: resurrected")

    def test_unresolved(self):
        self.begin()
        self.oracle.given("b", 4)
        self.assertEqual(self.oracle.unanswered("b"), 1)
        self.check("^b 4: unresolved")

    def test_unresolved_in_the_log(self):
        self.begin()
        self.append("b", 4, told=False)
        self.check("^b 4: unresolved")

    def test_unknown_though_the_primary_was_drained(self):
        self.append("a", 1, unknown=2)
        self.end_round()
        self.append("a", 2, unknown=3)
        self.check("^a: 1 outcomes were unknown for a while", is_clean=True)

    def test_two_answers(self):
        self.begin()
        self.oracle.is_never("a", 2, 0)
        self.check("^a 2: it has a second answer, never in the log")

    def test_answer_to_what_was_never_given(self):
        self.begin()
        self.oracle.is_durable("a", 4, (1, 9), 0)
        self.check("^a 4: it has an answer, and was never given")

    def test_record_that_was_never_given(self):
        self.begin()
        self.log.append(("a", 9, (1, 9)))
        self.check("^a 9 at .*: it was never given; the last one is 3")

    def test_record_of_no_writer(self):
        self.begin()
        self.log.append(("c", 1, (1, 9)))
        self.check("^c 1 at .*: there is no such writer")

    def test_message_is_short(self):
        self.begin()
        self.oracle.given("a", 1000)
        with self.assertRaises(Violation) as caught:
            self.end_round()
        self.assertEqual(str(caught.exception).count("unresolved"), 10)
        self.assertIn("and 987 violations more", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
