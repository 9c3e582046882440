"""An exception as the bytes of `grpc-status-details-bin` (google.rpc.Status with one ErrorInfo), and back."""

from __future__ import annotations

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from ..errors import DOMAIN, RevoluteError, error_from, kind_of
from ..v1 import error_pb2

DETAILS_KEY = "grpc-status-details-bin"
"""Key of the trailing metadata."""

_ERROR_INFO_URL = "type.googleapis.com/google.rpc.ErrorInfo"


def encode_status(error: RevoluteError) -> bytes:
    """Return the value of DETAILS_KEY for an exception."""
    kind = kind_of(error)
    info = error_pb2.ErrorInfo(reason=kind.reason, domain=DOMAIN)
    if error.argument:
        info.metadata["argument"] = error.argument
    if error.call_id:
        info.metadata["call_id"] = error.call_id
    detail = any_pb2.Any(type_url=_ERROR_INFO_URL, value=info.SerializeToString())
    return error_pb2.Status(code=kind.grpc_number, message=str(error), details=[detail]).SerializeToString()


def decode_status(data: bytes) -> RevoluteError | None:
    """Return the exception that the value of DETAILS_KEY stands for; None if it holds no ErrorInfo of
    revolute."""
    try:
        status = error_pb2.Status.FromString(data)
        for detail in status.details:
            if detail.type_url == _ERROR_INFO_URL:
                info = error_pb2.ErrorInfo.FromString(detail.value)
                if info.domain == DOMAIN:
                    error = error_from(info.reason, status.message, info.metadata.get("argument"))
                    error.call_id = info.metadata.get("call_id")
                    return error
    except DecodeError:
        return None
    return None
