"""Converts plain documents to protobuf messages and back.

A document consists of dicts, lists, numbers, strings and arrays under the field names of the proto files. In
a message, a Tensor is an array, a Blob is bytes, and an EntryList is a list of integers. Arrays and bytes are
not stored in the message but returned by field path, as `parts` sends and receives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf.message import Message

from ..v1 import tensor_pb2, trajectory_pb2

_TENSOR = tensor_pb2.Tensor.DESCRIPTOR.full_name
_BLOB = tensor_pb2.Blob.DESCRIPTOR.full_name
_ENTRY_LIST = trajectory_pb2.EntryList.DESCRIPTOR.full_name


def fill_message(message: Message, document: Mapping[str, Any]) -> dict[str, np.ndarray | bytes]:
    """Set the fields of a message from a document.

    Args:
        message: the message; its Tensors and Blobs are set, but left empty.
        document: values by field name; None leaves a field unset.

    Returns:
        Arrays and bytes by field path; text for a Blob is encoded as UTF-8.
    """
    values: dict[str, np.ndarray | bytes] = {}
    _fill(message, document, "", values)
    return values


def read_message(message: Message, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a message.

    Args:
        message: the message.
        values: its arrays and bytes by field path.

    Returns:
        Values by field name, without unset messages and unset optional fields.
    """
    return _read(message, "", values)


def _fill(message: Any, document: Mapping[str, Any], prefix: str, values: dict[str, Any]) -> None:
    for name, value in document.items():
        if value is None:
            continue
        field = message.DESCRIPTOR.fields_by_name[name]
        path = f"{prefix}{name}"
        if field.message_type is None:
            _set_plain(message, field, name, value)
        elif field.message_type.GetOptions().map_entry:
            place = getattr(message, name)
            for key, entry in value.items():
                place[key].SetInParent()
                values[f"{path}.{key}"] = entry
        elif field.is_repeated:
            for position, entry in enumerate(value):
                _fill(getattr(message, name).add(), entry, f"{path}.{position}.", values)
        else:
            getattr(message, name).SetInParent()
            _fill_nested(getattr(message, name), value, path, values)


def _fill_nested(message: Any, value: Any, path: str, values: dict[str, Any]) -> None:
    kind = message.DESCRIPTOR.full_name
    if kind in (_TENSOR, _BLOB):
        values[path] = value.encode() if isinstance(value, str) else value
    elif kind == _ENTRY_LIST:
        message.entries.extend(value)
    else:
        _fill(message, value, f"{path}.", values)


def _set_plain(message: Any, field: Any, name: str, value: Any) -> None:
    if field.is_repeated:
        getattr(message, name).extend(value)
    else:
        setattr(message, name, value)


def _read(message: Any, prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        path = f"{prefix}{field.name}"
        if field.message_type is None:
            document[field.name] = list(value) if field.is_repeated else value
        elif field.message_type.GetOptions().map_entry:
            document[field.name] = {key: values[f"{path}.{key}"] for key in sorted(value)}
        elif field.is_repeated:
            document[field.name] = [
                _read(entry, f"{path}.{position}.", values) for position, entry in enumerate(value)
            ]
        else:
            document[field.name] = _read_nested(value, path, values)
    return document


def _read_nested(message: Any, path: str, values: Mapping[str, Any]) -> Any:
    kind = message.DESCRIPTOR.full_name
    if kind in (_TENSOR, _BLOB):
        return values[path]
    return list(message.entries) if kind == _ENTRY_LIST else _read(message, f"{path}.", values)
