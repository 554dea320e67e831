# SPDX-License-Identifier: Apache-2.0
"""rejoin_oracle_test: that the oracle of suite `rejoin` sees what is wrong.

Goal: each way in which a log can differ from what was acknowledged is refused,
and what a power cut may leave is not. Method: a log of two writers, of which
each record but the last two was acknowledged, and what is read of it, changed
in one thing at a time.
"""
import hashlib
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from rejoin_oracle import Log, OracleError, record  # noqa: E402

# By LSN, from 1. Four threads: 1.4 follows 1.0, and 1.5 follows 1.1.
NUMBERS = ["1.0", "1.2", "1.1", "1.4", "1.3", "1.6", "1.5", "2.0", "2.1"]
UNKNOWN = ["2.2", "2.3"]


def said(numbers, shown=None):
    """As `held` says it, in two lines, of records that were read."""
    text = "".join(map(record, shown or numbers)).encode()
    return [f"held {' '.join(numbers[:3])} ", f"held {' '.join(numbers[3:])}",
            f"digest {hashlib.sha256(text).hexdigest()}"]


class RejoinOracleTest(unittest.TestCase):

    def setUp(self):
        self.log = Log("majority", "fsdax")
        self.log.give(1, 7)
        self.log.give(2, 8)
        for lsn, number in enumerate(NUMBERS, 1):
            self.log.acknowledge(lsn, number)

    def refuses(self, numbers, why, may_lack=False, shown=None):
        with self.assertRaisesRegex(OracleError, why):
            self.log.check(said(numbers, shown), may_lack)

    def changed(self, lsn, number):
        numbers = NUMBERS + UNKNOWN
        numbers[lsn - 1] = number
        return numbers

    def test_what_was_acknowledged_is_taken_and_one_more_of_a_thread(self):
        for numbers in (NUMBERS, NUMBERS + UNKNOWN[:1], NUMBERS + UNKNOWN):
            self.assertEqual(self.log.check(said(numbers), False), numbers)

    def test_records_may_lack_at_the_end_of_a_replica_that_is_behind(self):
        self.refuses(NUMBERS[:-1], "LSN 9, record 2.1, is missing")
        self.assertEqual(self.log.check(said(NUMBERS[:-1]), True), NUMBERS[:-1])
        self.assertEqual(self.log.check(said([]), True), [])

    def test_no_record_may_lack_before_the_end(self):
        self.refuses(NUMBERS[:4] + NUMBERS[5:], "LSN 5 is record 1.6", True)

    def test_another_record_at_an_lsn_is_refused(self):
        self.refuses(self.changed(2, "1.3"), "LSN 2 is record 1.3")

    def test_other_bytes_are_refused(self):
        self.refuses(NUMBERS, "not the bytes", shown=self.changed(9, "2.5"))

    def test_two_records_more_of_a_thread_are_refused(self):
        self.refuses(NUMBERS + ["2.2", "2.6"], "2.6 is behind 2.2")

    def test_a_gap_in_a_thread_is_refused(self):
        self.refuses(NUMBERS + ["2.6"], "2.6 is not the next")

    def test_a_record_twice_is_refused(self):
        self.refuses(NUMBERS + ["2.1"], "2.1 is not the next")

    def test_a_record_that_nobody_was_given_is_refused(self):
        self.refuses(NUMBERS + ["1.7"], "1.7 was never given")
        self.refuses(NUMBERS + ["3.0"], "3.0 was never given")

    def test_an_lsn_is_acknowledged_once(self):
        with self.assertRaisesRegex(OracleError, "LSN 9 was .* twice"):
            self.log.acknowledge(9, "2.2")

    def test_what_all_replicas_had_must_stay_on_each(self):
        kept = self.log.check(said(NUMBERS + UNKNOWN), False)
        self.log.keep(kept)
        self.log.acknowledge(12, "2.4")
        self.refuses(NUMBERS, "LSN 10, record 2.2, is missing")
        self.refuses(kept[:-1], "LSN 11, record 2.3, is missing", True)
        self.assertEqual(self.log.check(said(kept), True), kept)


if __name__ == "__main__":
    unittest.main()
