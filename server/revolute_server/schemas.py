"""Shapes of the requests: checked for both transports when one comes in, shown for HTTP at /docs.

One class per message of the protocol, with the same field names. Arrays are left to `revolute.arrays` and
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

Array = Annotated[Any, WithJsonSchema(_FLOATS)]
OptionalArray = Annotated[Any, WithJsonSchema({"anyOf": [_FLOATS, {"type": "null"}]})]
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

    base: str | None = Field(default=None, description='URDF only: "fixed" or "free"')
    ground: bool | None = Field(default=None, description="adds the plane z = 0")
    fuse_fixed: bool | None = Field(
        default=None, description="URDF only: merges bodies that fixed joints hold together"
    )
    timestep: float | None = Field(default=None, description="length of a step in s")
    solver: str | None = Field(default=None, description='"pgs"')
    iterations: int | None = Field(default=None, description="sweeps of the solver per step")
    contact: bool | None = Field(default=None, description="whether contacts act")
    limits: bool | None = Field(default=None, description="whether joint limits act")
    dry_friction: bool | None = Field(default=None, description="whether dry friction of joints acts")
    erp: float | None = Field(default=None, description="share of a position error repaired per step, 0 to 1")
    cfm: float | None = Field(default=None, description="regularisation of the constraint matrix")
    restitution: float | None = Field(default=None, description="coefficient of restitution, 0 to 1")
    margin: float | None = Field(
        default=None, description="distance in m below which a pair of shapes becomes a contact row"
    )


class ModelSource(Body):
    """A model to register: the text of a URDF or MJCF file, or the name of a built-in model."""

    builtin: str = Field(default="", description="name of a built-in model; give either this or text")
    text: str = Field(default="", description="the file's text; give either this or builtin")
    assets: dict[str, Asset] = Field(
        default={}, description="files that the text refers to, by the reference as written"
    )
    options: ModelOptions = ModelOptions()
    name: str = Field(default="", description="name for messages and listings")
    request_id: str = _REQUEST_ID


class CreateSession(Body):
    """A session to open."""

    model_id: str
    batch: int = Field(description="number of environments, at least 1")
    lease: float | None = Field(
        default=None, description="seconds without use after which it ends; the server's own by default"
    )
    request_id: str = _REQUEST_ID


class ForkSession(Body):
    """A session to copy."""

    lease: float | None = Field(
        default=None,
        description="seconds without use after which the copy ends; by default as the session",
    )
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

    qpos: OptionalArray = Field(default=None, description="[B, nq], or [nq] for all environments")
    qvel: OptionalArray = Field(default=None, description="[B, nv], or [nv] for all environments")
    request_id: str = _REQUEST_ID


class SetStateInputs(Body):
    """The state to put a session into; what is left out stays."""

    qpos: OptionalArray = Field(default=None, description="[B, nq], or [nq] for all environments")
    qvel: OptionalArray = Field(default=None, description="[B, nv], or [nv] for all environments")
    step_count: int | None = Field(default=None, description="steps since the last reset, at least 0")
    request_id: str = _REQUEST_ID


class StepInputs(Body):
    """One control, held for some steps."""

    ctrl: Array = Field(description="[B, nu], or [nu] for all environments")
    steps: int = Field(default=1, description="number of steps")
    request_id: str = _REQUEST_ID


class RolloutInputs(Body):
    """What to simulate."""

    model_id: str
    qpos: Array = Field(description="start configuration, [B, nq], or [nq] for all environments")
    qvel: Array = Field(description="start velocity, [B, nv], or [nv] for all environments")
    ctrl: Array = Field(description="[B, T, nu], or [T, nu] for one environment without a batch axis")
    params: dict[str, Array] = Field(default={}, description="model parameters to replace, by name")
    checkpoints: str = Field(
        default="every",
        description='states kept for the gradient: "every", "interval=k", "slots=s", or "none"',
    )
    states: str | None = Field(
        default=None,
        description='states to send: "all" or "final"; left out: all with "every", else the final',
    )
    request_id: str = _REQUEST_ID
    forget: list[str] = Field(
        default=[],
        max_length=1000,
        description="trajectories of the caller's to delete together with this rollout (of Rollout only)",
    )


class StreamRolloutInputs(Body):
    """What to simulate, and in which pieces."""

    inputs: RolloutInputs
    segment_steps: int | None = Field(
        default=None, description="steps of one segment, at least 1; by default as many as fill 256 KiB"
    )


class OwnCotangents(Body):
    """What to pull back through the trajectory that was just sent; over gRPC only."""

    qpos_bar: OptionalArray = None
    qvel_bar: OptionalArray = None
    times: list[int] | None = None


class Cotangents(Body):
    """What to pull back through a trajectory."""

    qpos_bar: OptionalArray = Field(
        default=None, description="d loss / d qpos, shaped like qpos; a leading axis K asks for K gradients"
    )
    qvel_bar: OptionalArray = Field(default=None, description="d loss / d qvel, likewise")
    wrt: Wrt = Field(default=[], description="what to differentiate by; empty: qpos, qvel, ctrl")
    times: list[int] | None = Field(
        default=None, description="times that qpos_bar and qvel_bar are of, ascending; left out: all"
    )


class Tangents(Body):
    """A direction to push forward through a trajectory; what is left out is zero."""

    qpos_tan: OptionalArray = Field(
        default=None, description="tangent of the start configuration, [B, nv], or [nv] for all environments"
    )
    qvel_tan: OptionalArray = Field(default=None, description="tangent of the start velocity, likewise")
    ctrl_tan: OptionalArray = Field(
        default=None, description="tangent of the controls, [B, T, nu], or [T, nu] for all environments"
    )
    params_tan: dict[str, Array] = Field(default={}, description="tangents of model parameters, by name")


class JacobianInputs(Body):
    """One step to differentiate."""

    model_id: str
    qpos: Array = Field(description="configuration before the step, [B, nq], or [nq] for all environments")
    qvel: Array = Field(description="velocity before the step, [B, nv], or [nv] for all environments")
    ctrl: Array = Field(description="[B, nu], or [nu] for one environment without a batch axis")
    params: dict[str, Array] = Field(default={}, description="model parameters to replace, by name")


class CheckGradientInputs(Body):
    """What to check; what is left out is chosen."""

    model_id: str
    qpos: OptionalArray = Field(default=None, description="start configuration, [nq]")
    qvel: OptionalArray = Field(default=None, description="start velocity, [nv]")
    ctrl: OptionalArray = Field(default=None, description="controls, [T, nu]")
    params: dict[str, Array] = Field(default={}, description="model parameters to replace, by name")
    wrt: Wrt = Field(default=[], description="inputs to check; empty: all that the model has")
    steps: int = Field(default=200, description="length T of the trajectory without ctrl, at least 1")
    directions: int = Field(default=3, description="random directions per input, at least 1")
    seed: int = Field(default=0, description="seed of everything random, at least 0")
    tolerance: float = Field(default=1e-5, description="largest relative error of a derivative that passes")


class SessionJacobianInputs(Body):
    """Controls of the step that is differentiated."""

    ctrl: Array = Field(description="[B, nu], or [nu] for all environments")


class ValueAndGradientInputs(Body):
    """What to simulate and which loss to differentiate."""

    inputs: RolloutInputs
    loss: dict[str, Any] = Field(
        description='{"terms": [{"quantity", "weight", "target", "when", "index", "form"}]}'
    )
    wrt: Wrt = Field(default=[], description="what to differentiate by; empty: qpos, qvel, ctrl")


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
