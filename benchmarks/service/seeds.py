"""Valid requests of every rpc, made from the descriptors: each field gets a value by its name.

A new rpc or field is covered as soon as it is in the proto files; a name that is not known here gets a value
of its type, no word if that is text.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.parts import to_parts
from revolute.contract.load_options import OPTIONS
from revolute.contract.v1 import model_pb2, server_pb2, session_pb2, trajectory_pb2

CART = b"""<mujoco model="cart"><option timestep="0.001" gravity="0 0 0"/><worldbody><body name="cart">
<joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
</body></worldbody><actuator><motor name="push" joint="x"/></actuator></mujoco>"""
STEPS = 3

ARRAYS: dict[str, Any] = {
    "qpos": [0.1],
    "qvel": [0.2],
    "ctrl": np.ones((STEPS, 1)),
    "qpos_bar": np.ones((STEPS + 1, 1)),
    "qvel_bar": np.ones((STEPS + 1, 1)),
    "ctrl_bar": np.ones((STEPS, 1)),
    "qfrc_applied": [0.3],
    "xfrc_applied": np.ones((2, 6)),
    "gain": [[-1.0, -0.1]],
    "qpos_tan": [1.0],
    "qvel_tan": [1.0],
    "ctrl_tan": np.ones((STEPS, 1)),
    "weight": 2.0,
    "target": [0.5],
    "where": [1.0],
}
"""Tensors by field name."""

ONE_STEP = {"StepInputs", "SetStateInputs", "SessionJacobianInputs", "JacobianInputs", "MeasuredStates"}
"""Messages whose ctrl is that of one step."""

WORDS: dict[str, Any] = {
    "quantity": "qpos",
    "when": "final",
    "form": "squared",
    "wrt": "ctrl",
    "batch": 1,
    "steps": 2,
    "directions": 1,
    "seed": 1,
    "tolerance": 1e-4,
    "name": "x",
    "checkpoints": "every",
    "contact_model": "hard",
    "states": "all",
    "elements": "x",
    "quantities": "body_pos:cart",
    "jacobians": "body_pos:cart",
    "measure": "body_pos:cart",
    "lease": 600.0,
}
"""Other fields by name."""

LEFT_OUT = {
    "ModelSource.builtin",
    "ModelSource.assets",
    "ListModelsRequest.page_token",
    "ListSessionsRequest.page_token",
    "ModelOptions.base",
    "ModelOptions.fuse_fixed",
    # beside step_count
    "SetStateInputs.step_counts",
    *(f"ModelOptions.{name}" for name, option in OPTIONS.items() if option.contact_model == "hard"),
    "Cotangents.times",
    # not beside a feedback
    "RolloutInputs.policy",
    "CheckGradientInputs.policy",
    "StepInputs.policy",
    # by names of a controller's arrays
    "Tangents.control_tan",
    # not beside a model's id
    "MeasuredStates.trajectory_id",
    "MeasuredStates.session_id",
    "MeasuredStates.times",
    # of models with mocap bodies
    *(
        f"{message}.{name}"
        for message in (
            "RolloutInputs",
            "JacobianInputs",
            "MeasuredStates",
            "StepInputs",
            "SessionJacobianInputs",
            "ResetInputs",
            "SetStateInputs",
            "CheckGradientInputs",
        )
        for name in ("mocap_pos", "mocap_quat")
    ),
    # by names of quantities
    "MeasureInputs.cotangents",
}
"""Fields without which a request is valid and with which it would not be."""


@dataclasses.dataclass(frozen=True)
class Rpc:
    """One rpc of the server.

    Attributes:
        service: short name of its service.
        descriptor: its description.
    """

    service: str
    descriptor: MethodDescriptor

    @property
    def name(self) -> str:
        return f"{self.service}.{self.descriptor.name}"

    @property
    def path(self) -> str:
        return f"/revolute.v1.{self.service}/{self.descriptor.name}"


def rpcs() -> Iterator[Rpc]:
    """Yield every rpc of the proto files."""
    for messages in (model_pb2, session_pb2, trajectory_pb2, server_pb2):
        for service in messages.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield Rpc(service.name, method)


def request_of(rpc: Rpc, ids: Mapping[str, str], *, chunk_bytes: int = 256) -> list[bytes]:
    """Return a valid request as the bytes of its parts, one unless the rpc's requests are streamed.

    Args:
        rpc: the rpc.
        ids: ids by field name: model_id, session_id, trajectory_id, ….
        chunk_bytes: how much of arrays and text stands in one part; small, so that there are several.
    """
    part_type = GetMessageClass(rpc.descriptor.input_type)
    start: Any = rpc.descriptor.input_type.fields_by_name.get("start")
    if start is None:
        message = part_type()
        fill_message(message, _document(rpc.descriptor.input_type, ids))
        return [message.SerializeToString()]
    message = GetMessageClass(start.message_type)()
    values = fill_message(message, _document(start.message_type, ids))
    return [
        part.SerializeToString() for part in to_parts(part_type, message, values, chunk_bytes=chunk_bytes)
    ]


def _document(kind: Any, ids: Mapping[str, str]) -> dict[str, Any]:
    """Return a message as a document with a value in every field."""
    return {
        field.name: _value(kind, field, ids)
        for field in kind.fields
        if f"{kind.name}.{field.name}" not in LEFT_OUT and not _is_unknown_word(field)
    }


def _is_unknown_word(field: FieldDescriptor) -> bool:
    """Tell whether a field is optional text that we have no word for."""
    is_text = field.cpp_type == FieldDescriptor.CPPTYPE_STRING
    return is_text and field.has_presence and field.name not in WORDS


def _value(kind: Descriptor, field: FieldDescriptor, ids: Mapping[str, str]) -> Any:
    inner = field.message_type
    if inner is None:
        if field.name == "request_id":
            # a damaged id must not be the next one's
            return uuid.uuid4().hex
        value = ids.get(field.name, WORDS.get(field.name, _plain(field)))
        return [value] if field.is_repeated else value
    if inner.GetOptions().map_entry:
        return {"gravity": np.array([0.0, 0.0, -9.81])}
    if inner.name == "Tensor":
        array = np.asarray(ARRAYS.get(field.name, [1.0]), np.float64)
        return array[0] if field.name == "ctrl" and kind.name in ONE_STEP else array
    if inner.name == "Blob":
        return CART
    if inner.name == "EntryList":
        return [0]
    document = _document(inner, ids)
    return [document] if field.is_repeated else document


def _plain(field: FieldDescriptor) -> Any:
    """Return a value of a field's type."""
    types = FieldDescriptor
    if field.cpp_type == types.CPPTYPE_STRING:
        return b"" if field.type == types.TYPE_BYTES else ""
    if field.cpp_type == types.CPPTYPE_BOOL:
        return False
    if field.cpp_type in (types.CPPTYPE_DOUBLE, types.CPPTYPE_FLOAT):
        return 0.01
    return 1
