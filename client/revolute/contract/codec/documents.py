"""Converts plain documents to protobuf messages and back.

A document consists of dicts, lists, numbers, strings and arrays under the field names of the proto files. In
a message, a Tensor is an array, a Blob is bytes, and an EntryList is a list of integers. Arrays and bytes are
not stored in the message but returned by field path, as `parts` sends and receives them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from ..v1 import tensor_pb2, trajectory_pb2


class Kind(Enum):
    """What a field of a message stands for in a document."""

    PLAIN = "numbers and strings, also lists of them"
    MAP = "arrays by name"
    ARRAY = "an array or bytes, a Tensor or Blob"
    ENTRIES = "an EntryList"
    LIST = "a list of documents"
    DOCUMENT = "a document"


class Field(NamedTuple):
    """Facts about a field of a message."""

    name: str
    kind: Kind
    is_repeated: bool
    has_presence: bool


_OF_MESSAGES = {
    tensor_pb2.Tensor.DESCRIPTOR.full_name: Kind.ARRAY,
    tensor_pb2.Blob.DESCRIPTOR.full_name: Kind.ARRAY,
    trajectory_pb2.EntryList.DESCRIPTOR.full_name: Kind.ENTRIES,
}


@functools.cache
def fields_of(descriptor: Descriptor) -> dict[str, Field]:
    """Return the fields of a kind of message by name, in their order; descriptors are slow to ask."""
    return {field.name: _field(field) for field in descriptor.fields}


def _field(field: Any) -> Field:
    if field.message_type is None:
        kind = Kind.PLAIN
    elif field.message_type.GetOptions().map_entry:
        kind = Kind.MAP
    elif field.is_repeated:
        kind = Kind.LIST
    else:
        kind = _OF_MESSAGES.get(field.message_type.full_name, Kind.DOCUMENT)
    return Field(field.name, kind, field.is_repeated, field.has_presence)


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
    fields = fields_of(message.DESCRIPTOR)
    for name, value in document.items():
        if value is None:
            continue
        field, path = fields[name], f"{prefix}{name}"
        if field.kind is Kind.PLAIN:
            if field.is_repeated:
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
            continue
        place = getattr(message, name)
        if field.kind is Kind.ARRAY:
            place.SetInParent()
            values[path] = value.encode() if isinstance(value, str) else value
        elif field.kind is Kind.MAP:
            for key, entry in value.items():
                place[key].SetInParent()
                values[f"{path}.{key}"] = entry
        elif field.kind is Kind.LIST:
            for position, entry in enumerate(value):
                _fill(place.add(), entry, f"{path}.{position}.", values)
        elif field.kind is Kind.ENTRIES:
            place.SetInParent()
            place.entries.extend(value)
        else:
            place.SetInParent()
            _fill(place, value, f"{path}.", values)


def _read(message: Any, prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, kind, is_repeated, has_presence in fields_of(message.DESCRIPTOR).values():
        if has_presence and not message.HasField(name):
            continue
        path = f"{prefix}{name}"
        if kind is Kind.ARRAY:
            document[name] = values[path]
            continue
        value = getattr(message, name)
        if kind is Kind.PLAIN:
            document[name] = list(value) if is_repeated else value
        elif kind is Kind.MAP:
            document[name] = {key: values[f"{path}.{key}"] for key in sorted(value)}
        elif kind is Kind.LIST:
            document[name] = [
                _read(entry, f"{path}.{position}.", values) for position, entry in enumerate(value)
            ]
        elif kind is Kind.ENTRIES:
            document[name] = list(value.entries)
        else:
            document[name] = _read(value, f"{path}.", values)
    return document
