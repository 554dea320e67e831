# SPDX-License-Identifier: Apache-2.0
"""errors: what the client raises. Each class says what happened.

    AlpheusError
      NotAppended        the request is not in the log and never will be
        ConditionFailed  one of its conditions does not hold
        InvalidRequest   it can never be appended as it is
        Busy             too much has no answer yet: append again later
        NotFound         no such log, or no such client
        NotAllowed       the token is missing, unknown, or not for that
        Closed           the client was closed before
      OutcomeUnknown     the request may be in the log or not
      NoPrimary          no node has said in time that it is primary
      OutOfLog           a place was cleaned, or was never assigned
      DataLoss           a record can't be read any more
      NotFinished        time is up before all is done

Thread safety: immutable.
"""

from __future__ import annotations

from typing import Optional


class AlpheusError(Exception):
    """An error of the client or of the service.

    `code` is the name of the status that a node gave, such as "NOT_FOUND";
    empty: the error comes from the client itself.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class NotAppended(AlpheusError):
    """The request is not in the log, and never will be as it was sent."""


class ConditionFailed(NotAppended):
    """A condition of the request does not hold. `next_lsn` is the LSN that the
    next record gets."""

    def __init__(self, message: str, code: str = "", next_lsn: int = 0) -> None:
        super().__init__(message, code)
        self.next_lsn = next_lsn


class InvalidRequest(NotAppended):
    """The request can never be appended, for example because it is too
    large."""


class Busy(NotAppended):
    """Too many requests or bytes have no answer yet. Append again later."""


class NotFound(NotAppended):
    """No such log, or the service does not know the client any more."""


class NotAllowed(NotAppended):
    """The token is missing or unknown, has expired, or is not for this log or
    this call. No other node would take it."""


class Closed(NotAppended):
    """The client was closed before. Nothing was done."""


class OutcomeUnknown(AlpheusError):
    """The request may be in the log or not. A reader of the log can tell:
    `sequence` is the request's number, None if it has none."""

    def __init__(self, message: str, code: str = "",
                 sequence: Optional[int] = None) -> None:
        super().__init__(message, code)
        self.sequence = sequence


class NoPrimary(AlpheusError):
    """No node has said in time that it is the primary of the log."""


class OutOfLog(AlpheusError):
    """A place is not in the log. `head_lsn` is the oldest LSN that is not
    cleaned: a reader may go on there. The records between are gone."""

    def __init__(self, message: str, code: str = "", head_lsn: int = 0) -> None:
        super().__init__(message, code)
        self.head_lsn = head_lsn


class DataLoss(AlpheusError):
    """A record can't be read any more."""


class NotFinished(AlpheusError, TimeoutError):
    """Time is up before all is done. What is under way goes on."""
