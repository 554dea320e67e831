#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""writer: the client in Python, as failover_rounds.py commands it. writer.cc
says what it is told, and what it says.

usage: writer.py LOG STALL_MS ADDRESS..., with the built package in PYTHONPATH
"""

import functools
import sys

import alpheus

# As in writer.cc.
CONDITIONAL_EVERY = 8


class Writer:
    """Appends numbered records, and says what became of each."""

    def __init__(self, log):
        self._log = log
        self._next = 1
        self._last_lsn = 0

    def append_through(self, number):
        """Appends the records up to this one."""
        while self._next <= number:
            expected = None
            if self._next % CONDITIONAL_EVERY == 0:
                expected = self._last_lsn + 1
            self._log.append(
                b"py %d" % self._next, expected_lsn=expected,
            ).add_done_callback(functools.partial(self._tell, self._next))
            self._next += 1

    # Callbacks run one at a time.
    def _tell(self, number, future):
        error = future.exception()
        unknown = self._log.unknown_outcomes
        if error is None:
            place = future.result().place
            if place is not None:
                self._last_lsn = place.lsn
            epoch, lsn = place or (0, 0)
            print(f"durable {number} {epoch} {lsn} {unknown}", flush=True)
        elif isinstance(error, alpheus.NotAppended):
            print(f"never {number} {unknown}", flush=True)
        else:
            print(f"open {number} {error!r}", flush=True)


def main(arguments):
    log_name, stall_ms, *addresses = arguments
    with alpheus.LogClient(addresses, log_name,
                           stall_seconds=int(stall_ms) / 1000) as log:
        writer = Writer(log)
        for line in sys.stdin:
            writer.append_through(int(line))
        log.flush()
        print("end", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
