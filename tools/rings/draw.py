# SPDX-License-Identifier: Apache-2.0
"""draw: what a commit draws of each suite.

The gate runs a slice of what is too long for it. The commit's hash draws the
slice: two runs of one commit check the same, and another commit checks another
part, so that in the long run every part comes up again and again.
"""

import hashlib
import random


class Draw:
    """Draws for one commit; each purpose draws by itself."""

    def __init__(self, commit):
        self.commit = commit

    def _random(self, purpose):
        # Hashed, because a suite that is added must not change what others draw.
        text = f"{self.commit} {purpose}".encode()
        return random.Random(hashlib.sha256(text).digest())

    def sample(self, purpose, items, count):
        """`count` of the items, or all of them, in their own order."""
        items = list(items)
        chosen = self._random(purpose).sample(range(len(items)),
                                              min(count, len(items)))
        return [items[i] for i in sorted(chosen)]

    def number(self, purpose, first, last):
        """One of first..last."""
        return self._random(purpose).randint(first, last)
