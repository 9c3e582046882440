"""Shapes of the requests: checked for both transports when one comes in, shown for HTTP at /docs.

One class per message of the protocol, with the same field names; the comments of the proto files describe
them. Arrays are left to `revolute.arrays` and
the engine, which check them the same way for every transport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from revolute.arrays import as_float64
from revolute.errors import ArgumentError

_FLOATS = {
    "type": "array",
    "items": {},
    "description": "Nested lists of numbers; rows of the last axis innermost.",
}

NUMBER_OR_NUMBERS = {"anyOf": [{"type": "number"}, _FLOATS]}

Array = Annotated[Any, WithJsonSchema(_FLOATS)]
OptionalArray = Annotated[Any, WithJsonSchema({"anyOf": [_FLOATS, {"type": "null"}]})]
AnyShape = Annotated[Any, WithJsonSchema(NUMBER_OR_NUMBERS)]
Asset = Annotated[bytes, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]
Wrt = list[str]


class Body(BaseModel):
    """A request or an answer; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


_REQUEST_ID = Field(
    default="",
    description="name of this call: a repeat with it has no second effect and gets the first answer",
)


class ModelOptions(Body):
    """Options of a model; what is left out takes the default."""

    base: str | None = None
    ground: bool | None = None
    fuse_fixed: bool | None = None
    timestep: float | None = None
    contact_model: str | None = None
    cone: str | None = None
    solver: str | None = None
    iterations: int | None = None
    contact: bool | None = None
    limits: bool | None = None
    dry_friction: bool | None = None
    erp: float | None = None
    cfm: float | None = None
    restitution: float | None = None
    margin: float | None = None


class ModelSource(Body):
    """A model to register: the text of a URDF or MJCF file, or the name of a built-in model."""

    builtin: str = ""
    text: str = ""
    assets: dict[str, Asset] = {}
    options: ModelOptions = ModelOptions()
    name: str = ""
    request_id: str = _REQUEST_ID


class CreateSession(Body):
    """A session to open."""

    model_id: str
    batch: int
    lease: float | None = None
    request_id: str = _REQUEST_ID


class ForkSession(Body):
    """A session to copy."""

    lease: float | None = None
    request_id: str = _REQUEST_ID


class KeepAlive(Body):
    """A lease to renew."""


class Deletion(Body):
    """What to delete is said elsewhere."""

    request_id: str = _REQUEST_ID


class Listing(Body):
    """A page of a list."""

    page_size: int = Field(default=1000, description="most entries, 1 to 1000")
    page_token: str = Field(default="", description="next_page_token of the page before, or empty")


class ResetInputs(Body):
    """The state to put a session into; what is left out is the model's default."""

    qpos: OptionalArray = None
    qvel: OptionalArray = None
    request_id: str = _REQUEST_ID


class SetStateInputs(Body):
    """The state to put a session into; what is left out stays."""

    qpos: OptionalArray = None
    qvel: OptionalArray = None
    step_count: int | None = None
    request_id: str = _REQUEST_ID


class StepInputs(Body):
    """One control, held for some steps."""

    ctrl: Array
    steps: int = 1
    request_id: str = _REQUEST_ID


class RolloutInputs(Body):
    """What to simulate."""

    model_id: str
    qpos: Array
    qvel: Array
    ctrl: Array
    params: dict[str, AnyShape] = {}
    checkpoints: str = "every"
    states: str | None = None
    request_id: str = _REQUEST_ID
    forget: list[str] = Field(default=[], max_length=1000)


class StreamRolloutInputs(Body):
    """What to simulate, and in which pieces."""

    inputs: RolloutInputs
    segment_steps: int | None = None


class OwnCotangents(Body):
    """What to pull back through the trajectory that was just sent; over gRPC only."""

    qpos_bar: OptionalArray = None
    qvel_bar: OptionalArray = None
    times: list[int] | None = None


class Cotangents(Body):
    """What to pull back through a trajectory."""

    qpos_bar: OptionalArray = None
    qvel_bar: OptionalArray = None
    wrt: Wrt = []
    times: list[int] | None = None


class Tangents(Body):
    """A direction to push forward through a trajectory; what is left out is zero."""

    qpos_tan: OptionalArray = None
    qvel_tan: OptionalArray = None
    ctrl_tan: OptionalArray = None
    params_tan: dict[str, AnyShape] = {}


class JacobianInputs(Body):
    """One step to differentiate."""

    model_id: str
    qpos: Array
    qvel: Array
    ctrl: Array
    params: dict[str, AnyShape] = {}


class CheckGradientInputs(Body):
    """What to check; what is left out is chosen."""

    model_id: str
    qpos: OptionalArray = None
    qvel: OptionalArray = None
    ctrl: OptionalArray = None
    params: dict[str, AnyShape] = {}
    wrt: Wrt = []
    steps: int = 200
    directions: int = 3
    seed: int = 0
    tolerance: float = 1e-5


class SessionJacobianInputs(Body):
    """Controls of the step that is differentiated."""

    ctrl: Array


class ValueAndGradientInputs(Body):
    """What to simulate and which loss to differentiate."""

    inputs: RolloutInputs
    loss: dict[str, Any]
    wrt: Wrt = []


class OwnLossInputs(Body):
    """What to simulate for a caller who has a loss of its own; over gRPC only."""

    inputs: RolloutInputs
    wrt: Wrt = []


REQUESTS: tuple[type[Body], ...] = (
    ModelSource,
    CreateSession,
    ForkSession,
    KeepAlive,
    ResetInputs,
    SetStateInputs,
    StepInputs,
    RolloutInputs,
    StreamRolloutInputs,
    Cotangents,
    Tangents,
    JacobianInputs,
    CheckGradientInputs,
    SessionJacobianInputs,
    ValueAndGradientInputs,
)

AnyBody = TypeVar("AnyBody", bound=Body)


def validate(kind: type[AnyBody], document: Mapping[str, Any]) -> AnyBody:
    """Check a request's fields.

    Raises:
        ArgumentError: a field is missing, unknown or of a wrong type; named by its path.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise _argument_error(error) from None


def array(name: str, value: Any) -> np.ndarray | None:
    """Return a field's numbers as float64, or None for a field that was left out."""
    return None if value is None else as_float64(name, value)


def arrays(name: str, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return a map of arrays as float64."""
    return {key: as_float64(f"{name}.{key}", value) for key, value in values.items()}


def _argument_error(error: ValidationError) -> ArgumentError:
    first = error.errors(include_url=False, include_context=False)[0]
    path = _path(first["loc"])
    if first["type"] == "missing":
        return ArgumentError.expected(path, "a value", "none")
    if first["type"] == "extra_forbidden":
        return ArgumentError.expected(
            path, "a field of this request", "an unknown one", advice="check the spelling"
        )
    expected = first["msg"].removeprefix("Input should be ").rstrip(".")
    return ArgumentError.expected(path, expected, _shown(first["input"]))


def _path(location: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in location)[:120] or "body"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
