"""Bodies of requests: pydantic models that check requests of all transports and describe them at /docs.

Each class mirrors a message of the protocol, with the same field names; the comments of the proto files
describe them. Arrays are checked by `contract.arrays` and by the engine. The decorator `takes` declares the
body of a verb.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from revolute.contract.arrays import as_float64
from revolute.contract.controllers import PLAIN, STEP_INPUTS, Control
from revolute.contract.errors import ArgumentError

Request = Mapping[str, Any]
Result = TypeVar("Result")

_FLOATS = {
    "type": "array",
    "items": {},
    "description": "Nested lists of numbers; rows of the last axis innermost.",
}

NUMBER_OR_NUMBERS = {"anyOf": [{"type": "number"}, _FLOATS]}

Array = Annotated[Any, WithJsonSchema(_FLOATS)]
OptionalArray = Annotated[Any, WithJsonSchema({"anyOf": [_FLOATS, {"type": "null"}]})]
AnyShape = Annotated[Any, WithJsonSchema(NUMBER_OR_NUMBERS)]

REQUEST_ID = Field(
    default="",
    description="name of this call: a repeat with it has no second effect and gets the first answer",
)

NAMES: list[str] = Field(default_factory=list, json_schema_extra={"default": []})
"""Names; none if it is not set. A default of `[]` would be copied at each request, slowly."""

EXAMPLE_MODEL = "0" * 64
"""Placeholder for an id from RegisterModel."""


class Body(BaseModel):
    """A request; unknown fields are refused.

    Attributes:
        example: a valid request for the built-in cart pole; the reader fills in ids.
    """

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    example: ClassVar[Mapping[str, Any]] = {}


class StepInputArrays(Body):
    """Inputs of steps besides state, control and parameters."""

    qfrc_applied: OptionalArray = None
    xfrc_applied: OptionalArray = None
    mocap_pos: OptionalArray = None
    mocap_quat: OptionalArray = None

    @property
    def step_inputs(self) -> dict[str, np.ndarray]:
        """Those that are set, by name."""
        return {
            name: as_float64(name, value)
            for name in STEP_INPUTS
            if (value := getattr(self, name)) is not None
        }


class Feedback(Body):
    """Linear feedback."""

    example = {"gain": [[-1.0, -10.0, -1.0, -2.0]], "qpos": [0.0, 0.0], "qvel": [0.0, 0.0]}

    gain: Array
    qpos: Array
    qvel: Array


class Policy(Body):
    """A network that acts as the policy."""

    example = {"weights": [0.0, 1.0, 0.0], "sizes": [2, 1], "observe": ["qvel"], "activation": "tanh"}

    weights: Array
    sizes: list[int]
    observe: list[str]
    activation: str = ""
    scale: Annotated[Any, WithJsonSchema({"anyOf": [*NUMBER_OR_NUMBERS["anyOf"], {"type": "null"}]})] = None
    squash: bool = False
    goal: OptionalArray = None


class Controlled(StepInputArrays):
    """How rows of controls act."""

    hold: int | None = None
    feedback: Feedback | None = None
    policy: Policy | None = None

    @property
    def control(self) -> Control:
        """How the rows of ctrl act, with the inputs of steps.

        Raises:
            ArgumentError: one of these fields is wrong.
        """
        return self._control(self.step_inputs)

    @property
    def controller(self) -> Control:
        """How the rows of ctrl act, without the inputs of steps.

        Raises:
            ArgumentError: one of these fields is wrong.
        """
        return self._control({})

    def _control(self, inputs: Mapping[str, np.ndarray]) -> Control:
        if self.hold is None and self.feedback is None and self.policy is None and not inputs:
            return PLAIN
        given = {name: dict(value) for name in ("feedback", "policy") if (value := getattr(self, name))}
        return Control.from_dict({"hold": self.hold, **inputs, **given})


class Deletion(Body):
    """Body of a delete request; the id is in the path."""

    request_id: str = REQUEST_ID


class Listing(Body):
    """A page of a list."""

    page_size: int = Field(default=1000, description="most entries, 1 to 1000")
    page_token: str = Field(default="", description="next_page_token of the page before, or empty")


AnyBody = TypeVar("AnyBody", bound=Body)


def takes(kind: type[Body]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Declare the body of a verb: the method gets a checked body in place of the request.

    The request is the last argument of the method, after the id if the verb has one. The class is available
    as the attribute `body` of the method.
    """

    def decorate(method: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(method)
        def checked(self: Any, *arguments: Any) -> Result:
            return method(self, *arguments[:-1], validate(kind, arguments[-1]))

        checked.body = kind  # type: ignore[attr-defined]
        return checked

    return decorate


def validate(kind: type[AnyBody], document: Request) -> AnyBody:
    """Check the fields of a request.

    Raises:
        ArgumentError: a field is missing, unknown or of a wrong type; `argument` is its path.
    """
    try:
        # faster than model_validate, whose options are not needed
        found: AnyBody = kind.__pydantic_validator__.validate_python(document)
        return found
    except ValidationError as error:
        raise _argument_error(error) from None


def array(name: str, value: Any) -> np.ndarray | None:
    """Return a field as a float64 array; None if it is not set."""
    return None if value is None else as_float64(name, value)


def arrays(name: str, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return a map of float64 arrays."""
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
