"""Converts an exception to the bytes of `grpc-status-details-bin` and back.

The bytes are a google.rpc.Status with one ErrorInfo, and a RetryInfo if `retry_after` is known.
"""

from __future__ import annotations

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import DecodeError

from ..errors import DOMAIN, RevoluteError, error_from, kind_of
from ..v1 import error_pb2

DETAILS_KEY = "grpc-status-details-bin"
"""Key of the trailing metadata."""

_ERROR_INFO_URL = "type.googleapis.com/google.rpc.ErrorInfo"
_RETRY_INFO_URL = "type.googleapis.com/google.rpc.RetryInfo"


def encode_status(error: RevoluteError) -> bytes:
    """Return the value of DETAILS_KEY for an exception."""
    kind = kind_of(error)
    info = error_pb2.ErrorInfo(reason=kind.reason, domain=DOMAIN)
    if error.argument:
        info.metadata["argument"] = error.argument
    if error.call_id:
        info.metadata["call_id"] = error.call_id
    details = [any_pb2.Any(type_url=_ERROR_INFO_URL, value=info.SerializeToString())]
    if error.retry_after is not None:
        retry = error_pb2.RetryInfo(retry_delay=_duration(error.retry_after))
        details.append(any_pb2.Any(type_url=_RETRY_INFO_URL, value=retry.SerializeToString()))
    return error_pb2.Status(code=kind.grpc_number, message=str(error), details=details).SerializeToString()


def decode_status(data: bytes) -> RevoluteError | None:
    """Return the exception for a value of DETAILS_KEY; None if it has no ErrorInfo of revolute."""
    try:
        status = error_pb2.Status.FromString(data)
        found, retry_after = None, None
        for detail in status.details:
            if detail.type_url == _ERROR_INFO_URL:
                info = error_pb2.ErrorInfo.FromString(detail.value)
                if info.domain == DOMAIN:
                    found = error_from(info.reason, status.message, info.metadata.get("argument"))
                    found.call_id = info.metadata.get("call_id")
            elif detail.type_url == _RETRY_INFO_URL:
                delay = error_pb2.RetryInfo.FromString(detail.value).retry_delay
                retry_after = delay.seconds + 1e-9 * delay.nanos
    except DecodeError:
        return None
    if found is not None:
        found.retry_after = retry_after
    return found


def _duration(seconds: float) -> duration_pb2.Duration:
    duration = duration_pb2.Duration()
    duration.FromMilliseconds(round(1e3 * seconds))
    return duration
