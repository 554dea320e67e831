# SPDX-License-Identifier: Apache-2.0
"""rejoin_oracle: what a log must hold whose writers were fed by numbers.

Record "writer.index" is the one with that index, from 0, of the writer with
that number. A writer has several threads: index i goes to thread i mod THREADS,
which appends its records one after the other, each when the one before is
durable.
"""
import hashlib

# The lines of `stream` (rejoin_guest.sh).
THREADS = 4


class OracleError(Exception):
    """The log holds what it must not, or lacks what it must hold."""


def record(number):
    """The line that `feed` (rejoin_guest.sh) makes."""
    index = int(number.split(".")[1])
    return f"record {number} {index:0{index * 37 % 900 + 1}d}\n"


class Log:
    """A log: what its writers were given, and what was acknowledged."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.given = {}  # by writer, how many
        self.acknowledged = {}  # by LSN, the number
        self.kept = 0  # LSN up to which every replica must have it

    def __str__(self):
        return f"log {self.name} of cluster {self.cluster}"

    def fail(self, what):
        raise OracleError(f"{self}: {what}")

    def give(self, writer, count):
        """The writer has so many from now on."""
        self.given[writer] = count

    def acknowledge(self, lsn, number):
        if lsn in self.acknowledged:
            self.fail(f"LSN {lsn} was acknowledged twice, as record "
                      f"{self.acknowledged[lsn]} and as {number}")
        self.acknowledged[lsn] = number

    def check(self, said, may_lack):
        """Judges what `held` (rejoin_guest.sh) said: all that was acknowledged,
        each record at its LSN, but for the last ones if they may be lacking,
        behind what was kept; and no record that nobody can have appended.
        Returns the numbers."""
        numbers = [number for line in said if line.startswith("held ")
                   for number in line.split()[1:]]
        text = "".join(map(record, numbers)).encode()
        if f"digest {hashlib.sha256(text).hexdigest()}" not in said:
            self.fail(f"{len(numbers)} records are not the bytes that were "
                      "appended")
        self.check_acknowledged(numbers, may_lack)
        self.check_threads(numbers)
        return numbers

    def check_acknowledged(self, numbers, may_lack):
        for lsn, number in self.acknowledged.items():
            if lsn > len(numbers):
                if not may_lack or lsn <= self.kept:
                    self.fail(f"LSN {lsn}, record {number}, is missing")
            elif numbers[lsn - 1] != number:
                self.fail(f"LSN {lsn} is record {numbers[lsn - 1]}, and "
                          f"{number} was acknowledged")

    def check_threads(self, numbers):
        """Each thread's records without a gap, and at the end of them at most
        one that was not acknowledged."""
        acknowledged = set(self.acknowledged.values())
        following, unknown = {}, {}
        for number in numbers:
            writer, index = map(int, number.split("."))
            thread = (writer, index % THREADS)
            if index >= self.given.get(writer, 0):
                self.fail(f"record {number} was never given to a writer")
            if index != following.get(thread, thread[1]):
                self.fail(f"record {number} is not the next of its thread")
            if thread in unknown:
                self.fail(f"record {number} is behind {unknown[thread]}, which "
                          "was not acknowledged")
            following[thread] = index + THREADS
            if number not in acknowledged:
                unknown[thread] = number

    def keep(self, numbers):
        """All replicas were seen to have it, so it stays on each of them,
        acknowledged or not."""
        self.acknowledged = dict(enumerate(numbers, 1))
        self.kept = len(numbers)
