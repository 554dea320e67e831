#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches for the primary: as tests/api/client/locate of the client in C++.

usage: locate_test.py, with the built package in PYTHONPATH
"""

import unittest

from alpheus.backoff import Backoff, Rests
from alpheus.locate import PrimarySearch

ALMOST_ONE = 1 - 2**-53


class PrimarySearchTest(unittest.TestCase):

    def setUp(self):
        self.now = 1000.0
        self.rested = 0.0
        self.drawn = 0.0
        self.search = PrimarySearch(["a", "b", "c"], Rests(100.0, 400.0),
                                    lambda: self.drawn)

    def asked(self):
        """Returns the address that is asked next, and goes on to its time."""
        step = self.search.next(self.now)
        self.rested = step.not_before - self.now
        self.now = step.not_before
        return step.address

    # PSR1.
    def test_asks_each_node_once_in_a_round(self):
        for _ in range(2):
            for address in "abc":
                self.assertEqual(self.asked(), address)
                self.search.not_primary()

    # PSR2.
    def test_follows_a_hint_once(self):
        asked = []
        for hint in ("c", "a", "c", ""):
            asked.append(self.asked())
            self.search.not_primary(hint)
        self.assertEqual(asked, ["a", "c", "b", "a"])
        self.assertGreater(self.rested, 0)

    def test_follows_a_hint_to_a_node_that_it_does_not_know(self):
        self.asked()
        self.search.not_primary("z")
        self.assertEqual(self.asked(), "z")
        self.assertEqual(self.rested, 0)

    def test_begins_with_the_primary_that_it_found_last(self):
        self.asked()
        self.search.not_primary("z")
        self.asked()
        self.search.found()
        self.assertEqual(self.asked(), "z")
        self.search.not_primary()
        self.assertEqual(self.asked(), "a")

    # PSR3.
    def test_rests_longer_and_longer(self):
        rests = []
        for _ in range(5):
            self.asked()
            rests.append(round(self.rested, 6))
            self.asked()
            self.asked()
            self.drawn = ALMOST_ONE
        self.assertEqual(rests, [0, 100, 200, 400, 400])
        self.search.found()
        for _ in range(3):
            self.asked()
        self.assertEqual(self.rested, 0)
        self.drawn = 0.0
        self.asked()
        self.assertEqual(self.rested, 50)

    def test_clients_begin_with_different_nodes(self):
        first = {PrimarySearch(["a", "b", "c"], Rests(),
                               lambda drawn=drawn: drawn).next(0).address
                 for drawn in (0.0, 0.5, ALMOST_ONE)}
        self.assertEqual(first, {"a", "b", "c"})


class BackoffTest(unittest.TestCase):

    def test_success_makes_the_next_rest_a_short_one(self):
        backoff = Backoff(Rests(1.0, 8.0), lambda: 0.0)
        self.assertEqual([backoff.rest() for _ in range(6)],
                         [0.5, 1.0, 2.0, 4.0, 4.0, 4.0])
        backoff.succeeded()
        self.assertEqual(backoff.rest(), 0.5)


if __name__ == "__main__":
    unittest.main()
