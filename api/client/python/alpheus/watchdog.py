# SPDX-License-Identifier: Apache-2.0
"""watchdog: one thread that looks after calls that wait for a node.

Idea: a node that is stopped, or whose machine has lost its power, ends no
connection. So whoever waits for it would wait for as long as TCP does. A call
that is watched is asked each period whether it has waited for too long, and
ends itself.

Thread safety: all members by many threads.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, Optional


class Watchdog:
    """Asks checks each period, on a thread of its own that runs while there is
    one."""

    def __init__(self, period: float) -> None:
        """`period`: seconds."""
        self._period = period
        self._changed = threading.Condition()
        self._checks: Dict[int, Callable[[float], None]] = {}
        self._next = 0
        self._thread: Optional[threading.Thread] = None

    def watch(self, check: Callable[[float], None]) -> int:
        """Calls check(time.monotonic()) each period, on the watchdog's thread,
        until `forget` gets the number that is returned. `check` does not
        raise."""
        with self._changed:
            self._next += 1
            self._checks[self._next] = check
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="alpheus-watchdog", daemon=True)
                self._thread.start()
            return self._next

    def forget(self, number: int) -> None:
        """Ends what `watch` began. A call of the check may be under way."""
        with self._changed:
            self._checks.pop(number, None)
            if not self._checks:
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._checks, self._period)
                if not self._checks:
                    self._thread = None
                    return
                checks = list(self._checks.values())
            now = time.monotonic()
            for check in checks:
                check(now)
