# SPDX-License-Identifier: Apache-2.0
"""wire: messages of the API as values and errors of this package.

Thread safety: pure functions.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, Optional, Tuple

import google.protobuf.any_pb2 as any_pb2
import google.protobuf.message
import grpc

from alpheus import errors
from alpheus.v1 import log_service_pb2 as pb
from alpheus.values import (Consistency, Durability, LogStatus, Payload, Place,
                            Record)

# Trailing metadata with a google.rpc.Status, and its field with the details.
_DETAILS_KEY = "grpc-status-details-bin"
_DETAILS_FIELD = 3
_CODE_NAMES: Dict[int, str] = {
    code.value[0]: code.name for code in grpc.StatusCode}
# After these no other node says anything else.
_FINAL = frozenset({
    grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED})
# The same for readers: what they ask for is the same on all nodes.
_FINAL_FOR_READERS = _FINAL | {
    grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.DATA_LOSS}


def place_of(message: pb.Place) -> Place:
    """Returns a place as a value."""
    return Place(message.epoch, message.lsn)


def message_of(place: Place) -> pb.Place:
    """Returns a place as a message."""
    return pb.Place(epoch=place.epoch, lsn=place.lsn)


def first_of(run: pb.Run) -> Optional[Place]:
    """Returns the place of the first request of a run, if it is known."""
    return place_of(run.first) if run.HasField("first") else None


def places_of(runs: Iterable[pb.Run]) -> Dict[int, Place]:
    """Returns the places that are known, by sequence."""
    return {run.first_sequence + i: Place(run.first.epoch, run.first.lsn + i)
            for run in runs if run.HasField("first")
            for i in range(run.count)}


def record_of(message: pb.Record) -> Record:
    """Returns a record as a value."""
    return Record(place_of(message.place), place_of(message.client),
                  message.sequence, message.tag, tuple(message.payloads))


def status_of(message: pb.GetStatusResponse) -> LogStatus:
    """Returns the state of a log as a value."""
    return LogStatus(message.is_primary, message.epoch, message.head_lsn,
                     message.durable_lsn, message.next_lsn,
                     message.max_payload_bytes, message.clients,
                     message.primary.node, message.primary.address,
                     message.is_confirmed)


def durability_of(durability: Durability) -> int:
    """Returns the number of a durability in messages."""
    return pb.Durability.Value(f"DURABILITY_{durability.name}")


def consistency_of(consistency: Consistency) -> int:
    """Returns the number of a consistency in messages."""
    return pb.Consistency.Value(f"CONSISTENCY_{consistency.name}")


def set_payload(payload: Payload, message: pb.Payload) -> None:
    """Writes a payload into a message."""
    if payload.tag:
        message.tag = payload.tag
    if payload.expected_lsn is not None:
        message.expected_lsn = payload.expected_lsn
    if payload.only_if_last:
        message.only_if_last = True
    if len(payload.parts) == 1:
        message.data = payload.parts[0]
    else:
        message.batch.extend(payload.parts)


def details_of(error: grpc.RpcError) -> pb.RequestError:
    """Returns the error in the details of a status; nothing set: there is
    none."""
    found = pb.RequestError()
    metadata = getattr(error, "trailing_metadata", lambda: None)()
    for key, value in metadata or ():
        if key != _DETAILS_KEY:
            continue
        try:
            for field, data in _bytes_fields(value):
                if field == _DETAILS_FIELD:
                    any_pb2.Any.FromString(data).Unpack(found)
        except (ValueError, google.protobuf.message.DecodeError):
            return pb.RequestError()  # not from a node
    return found


def is_final(error: grpc.RpcError) -> bool:
    """Returns whether no other node may take a client, after this error."""
    return error.code() in _FINAL


def is_final_for_readers(error: grpc.RpcError) -> bool:
    """Returns whether no other node may do what a reader asks for, or
    whoever cleans, after this error."""
    return error.code() in _FINAL_FOR_READERS


def tell(error: grpc.RpcError, address: str) -> str:
    """Returns a sentence with what a node said."""
    return f"node {address}: {error.code().name}: {error.details()}"


def error_of(error: grpc.RpcError, address: str) -> errors.AlpheusError:
    """Returns the error of a call that is not tried again."""
    code = error.code()
    said = tell(error, address)
    if code is grpc.StatusCode.NOT_FOUND:
        return errors.NotFound(said, code.name)
    if code is grpc.StatusCode.OUT_OF_RANGE:
        head = details_of(error).out_of_log.head_lsn
        return errors.OutOfLog(
            f"{said}. The oldest record is at LSN {head}", code.name, head)
    if code is grpc.StatusCode.DATA_LOSS:
        return errors.DataLoss(said, code.name)
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return errors.InvalidRequest(said, code.name)
    if code in (grpc.StatusCode.UNAUTHENTICATED,
                grpc.StatusCode.PERMISSION_DENIED):
        return errors.NotAllowed(said, code.name)
    return errors.AlpheusError(said, code.name)


def error_of_refusal(
        refusal: pb.AppendStreamResponse.Refusal) -> errors.NotAppended:
    """Returns the error of a request that was refused for good."""
    code = _CODE_NAMES.get(refusal.code, "UNKNOWN")
    if refusal.error.HasField("tail_mismatch"):
        return errors.ConditionFailed(refusal.message, code,
                                      refusal.error.tail_mismatch.next_lsn)
    if code == "INVALID_ARGUMENT":
        return errors.InvalidRequest(refusal.message, code)
    return errors.NotAppended(refusal.message, code)


def _bytes_fields(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """Yields number and bytes of each field of a message that has a length.
    Other packages than protobuf declare google.rpc.Status; this needs none.
    Errors: ValueError (no message)."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(data, at)
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + size > len(data):
            raise ValueError("cut off")
        if kind == 2:
            yield tag >> 3, data[at:at + size]
        at += size


def _varint(data: bytes, at: int) -> Tuple[int, int]:
    """Returns a varint and the offset behind it. Errors: ValueError."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("cut off")
        value |= (data[at] & 0x7f) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("a varint of more than ten bytes")
