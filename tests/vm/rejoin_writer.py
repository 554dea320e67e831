# SPDX-License-Identifier: Apache-2.0
"""rejoin_writer: a primary in a guest that is fed, and heard, from here.

Idea: it is told how many records it may append, not the records; it makes them
(`feed`, rejoin_guest.sh). So it has some to append at each moment until it is
to rest, however slow the way of its acknowledgements is.
"""
import re
import time

from guest import GuestError

# The most lines that it was given and has not acknowledged.
WINDOW = 64
# More than any writer appends.
ENDLESS = 1 << 30


class Writer:
    """A primary that runs, on node 1 unless told otherwise."""

    def __init__(self, log, number, guest, node=1, folder=""):
        self.guest = guest
        self.log = log
        self.number = number
        self.name = f"writer{number}"
        self.given = 0
        self.limit = 0  # of `given`
        self.count = 0  # of acknowledgements
        self.in_sync = 3  # as it says
        self.changed_at = 0
        self.process = guest.start(
            self.name, f"stream {number} {log.cluster} {log.name} {node} "
            f"{folder}{log.cluster}{node}/{log.name}.alpheus", self.hear)

    def hear(self, line):
        acknowledged = re.fullmatch(r"(\d+) (\d+) \d+", line)
        told = re.search(r"(\d) of 3 replicas are in sync", line)
        if acknowledged:
            lsn, index = acknowledged.groups()
            self.count += 1
            self.log.acknowledge(int(lsn), f"{self.number}.{index}")
            if self.given - self.count <= WINDOW * 3 // 4:
                self.give()
        elif told:
            self.in_sync = int(told.group(1))
            self.changed_at = time.monotonic()

    def give(self):
        with self.guest.changed:  # Two threads may be here.
            given = min(self.limit, self.count + WINDOW)
            if given > self.given:
                self.given = given
                self.log.give(self.number, given)
                self.guest.tell(self.name, given)

    def go_on(self, count=ENDLESS):
        """Has it append so many more, and then wait."""
        self.limit = self.count + count
        self.give()

    @property
    def has_ended(self):
        return self.process.status is not None

    def await_more(self, count):
        """Has it append more; it must."""
        least = self.count + count
        self.go_on(count + WINDOW)
        self.guest.wait(lambda: self.count >= least or self.has_ended,
                        f"{count} records more in {self.log}")
        self.must_run()

    def must_run(self):
        if self.has_ended:
            raise GuestError(f"{self.log}: the primary ended with status "
                             f"{self.process.status}")

    def end(self, in_sync=3):
        """Ends its input; all that it was given must be acknowledged, and so
        many members must have it."""
        with self.guest.changed:
            self.limit = 0
        self.guest.wait(
            lambda: self.count == self.given and self.in_sync == in_sync
            or self.has_ended, f"the end of {self.log}")
        self.must_run()
        self.guest.tell(self.name, "end")
        if self.guest.end_of(self.process) != 0:
            raise GuestError(f"{self.log}: the primary ended with status "
                             f"{self.process.status}")
