# SPDX-License-Identifier: Apache-2.0
"""alpheus: appends to a replicated log and reads it.

LogClient (client.py) is the way in. Modules by theme:

    client          what callers use
    values, errors  what is appended and read; what is raised
    options         what a client can be told
    append_session  requests without an answer; pure
    locate, backoff which node is asked next, and when; pure
    appender        brings requests to the primary
    reading         records, from primary to primary
    backup          a backup of the log, into a file
    nodes, watchdog connections; calls that wait for too long
    wire            messages as values
"""

from alpheus.append_session import Limits
from alpheus.appender import AppendFuture
from alpheus.backoff import Rests
from alpheus.client import LogClient
from alpheus.errors import (AlpheusError, Busy, Closed, ConditionFailed,
                            DataLoss, InvalidRequest, NoPrimary, NotAllowed,
                            NotAppended, NotFinished, NotFound, OutcomeUnknown,
                            OutOfLog)
from alpheus.options import LogClientOptions
from alpheus.reading import Reader
from alpheus.values import (Appended, Backup, Consistency, Durability,
                            Exposure, LogStatus, Payload, Place, Record)

__all__ = [
    "AlpheusError", "AppendFuture", "Appended", "Backup", "Busy", "Closed",
    "ConditionFailed", "Consistency", "DataLoss", "Durability", "Exposure", "InvalidRequest",
    "Limits", "LogClient", "LogClientOptions", "LogStatus", "NoPrimary", "NotAllowed", "NotAppended",
    "NotFinished", "NotFound", "OutOfLog", "OutcomeUnknown", "Payload", "Place",
    "Reader", "Record", "Rests",
]
