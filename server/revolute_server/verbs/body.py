"""Bodies of requests: checked when a request comes in, whichever way, and shown for HTTP at /docs.

There is one class per message of the protocol, with the same field names; the comments of the proto files
describe them. The contract's `arrays` and the engine check arrays, the same way for every transport. `takes`
at a verb's method says what the verb takes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from revolute.contract.arrays import as_float64
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

EXAMPLE_MODEL = "0" * 64
"""Stands for an id that RegisterModel has returned."""


class Body(BaseModel):
    """A request; unknown fields are refused.

    Attributes:
        example: one that can be sent, of the built-in cart pole, with ids that the reader's server has given.
    """

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    example: ClassVar[Mapping[str, Any]] = {}


class Deletion(Body):
    """Body of a delete request; the id is in the path."""

    request_id: str = REQUEST_ID


class Listing(Body):
    """A page of a list."""

    page_size: int = Field(default=1000, description="most entries, 1 to 1000")
    page_token: str = Field(default="", description="next_page_token of the page before, or empty")


AnyBody = TypeVar("AnyBody", bound=Body)


def takes(kind: type[Body]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Say which body a verb takes; its method then gets one that was checked.

    The method is called with the request as its last argument; before that comes the id for verbs that are
    about something that has one. Whoever wants to know the body finds it as the method's `body`.
    """

    def decorate(method: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(method)
        def checked(self: Any, *arguments: Any) -> Result:
            return method(self, *arguments[:-1], validate(kind, arguments[-1]))

        checked.body = kind  # type: ignore[attr-defined]
        return checked

    return decorate


def validate(kind: type[AnyBody], document: Request) -> AnyBody:
    """Check a request's fields.

    Raises:
        ArgumentError: a field is missing, unknown or of a wrong type; named by its path.
    """
    try:
        # model_validate, without the time that its options take
        found: AnyBody = kind.__pydantic_validator__.validate_python(document)
        return found
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
