"""Exceptions of revolute, the same classes and texts in process, over gRPC and over HTTP.

One table, `KINDS`, ties each class to its reason, its gRPC status code and its HTTP status; engine, server
and client all read it, so an error keeps its class on every transport. Messages are one line of the form

    <argument>: expected <what, shape or unit>, got <value>[ at <where>]; <what to do>

and `RevoluteError.expected` builds that line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

DOMAIN = "revolute"
"""Value of `ErrorInfo.domain` on the wire."""

_Error = TypeVar("_Error", bound="RevoluteError")

_LONGEST_MESSAGE = 1000
"""Characters of a message; gRPC carries it in trailing metadata, which clients take up to 8 KiB of."""

_LONGEST_NAME, _LONGEST_VALUE = 120, 300
"""Characters of an argument's name and of a value that a message quotes."""


class RevoluteError(Exception):
    """Base of all exceptions that revolute raises on purpose.

    Attributes:
        reason: name of the kind of failure in UPPER_SNAKE_CASE, stable across releases.
        argument: name of the argument or field at fault, None when no single one is.
        message: the one-line text, equal to `str(error)`.
        call_id: id of the call in the server's log, None in process.
        retry_after: seconds after which the same call may succeed, where the server knows; else None.
    """

    reason: str = "INTERNAL"
    call_id: str | None = None

    def __init__(
        self, message: str, *, argument: str | None = None, retry_after: float | None = None
    ) -> None:
        # half a surrogate pair, which no transport can carry, is shown by its number
        text = " ".join(str(message).splitlines()).encode("utf-8", "backslashreplace").decode("utf-8")
        self.message = shortened(text, _LONGEST_MESSAGE)
        self.argument = argument and shortened(argument, _LONGEST_NAME)
        self.retry_after = retry_after
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    @classmethod
    def expected(
        cls: type[_Error],
        argument: str,
        what: str,
        got: Any,
        *,
        at: str | None = None,
        advice: str | None = None,
    ) -> _Error:
        """Return an error whose text follows `<argument>: expected <what>, got <got>[ at <at>][; <advice>]`.

        Args:
            argument: name of the argument at fault, as the caller wrote it.
            what: the value, shape or unit that is accepted.
            got: the value found; printed with `str`, and cut where it is long.
            at: where in the argument it was found.
            advice: what to do about it.
        """
        name, value = shortened(argument, _LONGEST_NAME), shortened(str(got), _LONGEST_VALUE)
        where = f" at {shortened(at, _LONGEST_VALUE)}" if at else ""
        cure = f"; {advice}" if advice else ""
        return cls(f"{name}: expected {what}, got {value}{where}{cure}", argument=name)


def shortened(text: str, longest: int) -> str:
    """Return a text, its end cut if it has more than so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


class ArgumentError(RevoluteError, ValueError):
    """An argument has a wrong shape, type, value or name."""

    reason = "INVALID_ARGUMENT"


class ModelError(RevoluteError, ValueError):
    """A model file cannot be read or asks for something that is not supported; names file and element.

    Its `argument` is always "model": the text begins with the file instead.
    """

    reason = "INVALID_MODEL"

    def __init__(
        self, message: str, *, argument: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, argument="model", retry_after=retry_after)


class NotFoundError(RevoluteError, LookupError):
    """A model, session or trajectory of the caller's does not exist (any more)."""

    reason = "NOT_FOUND"

    @classmethod
    def missing(
        cls, noun: str, identifier: str, why: str = "it was deleted or made elsewhere"
    ) -> NotFoundError:
        """Return the error for an id that nothing has.

        Args:
            noun: "model", "session" or "trajectory".
            identifier: the id that was given.
            why: what became of it.
        """
        if noun == "model":
            why += ", load it again"
        return cls.expected(
            f"{noun}_id",
            f"the id of a {noun} that is kept",
            repr(shortened(identifier, 80)),
            advice=why,
        )


class PermissionDeniedError(RevoluteError, PermissionError):
    """The caller's role does not allow this, or it would delete a model that another caller registered."""

    reason = "PERMISSION_DENIED"


class UnauthenticatedError(PermissionDeniedError):
    """The server wants a token and got none that it knows."""

    reason = "UNAUTHENTICATED"


class LimitError(RevoluteError, RuntimeError):
    """A request exceeds a limit of the server; the text names the limit, the size and the setting."""

    reason = "LIMIT_EXCEEDED"


class DivergedError(RevoluteError, RuntimeError):
    """Every environment left the finite numbers, so there is no gradient to give."""

    reason = "DIVERGED"


class UnavailableError(RevoluteError, RuntimeError):
    """No engine or server can be reached; the text names the address and what to do.

    Attributes:
        permanent: whether the same call cannot succeed later, e.g. where another kind of server answers.
    """

    reason = "UNAVAILABLE"
    permanent = False


class DeadlineError(UnavailableError, TimeoutError):
    """The caller's timeout passed before the answer came."""

    reason = "DEADLINE_EXCEEDED"


class CancelledError(RevoluteError, RuntimeError):
    """The work was cancelled by its caller."""

    reason = "CANCELLED"


class DataLossError(RevoluteError, RuntimeError):
    """What the server kept under this id is damaged and cannot be given back; other records are not
    affected."""

    reason = "DATA_LOSS"


class InternalError(RevoluteError, RuntimeError):
    """A fault of revolute itself; please report it."""

    reason = "INTERNAL"


@dataclass(frozen=True)
class Kind:
    """One row of the error table.

    Attributes:
        error: exception class.
        reason: `ErrorInfo.reason` over gRPC and `reason` of the HTTP problem.
        grpc_code: name of the gRPC status code (`grpc.StatusCode[...]`).
        grpc_number: number of that code in `google.rpc.Code`.
        http_status: HTTP status code.
        title: short text that is the same for every error of the kind (RFC 9457 `title`).
    """

    error: type[RevoluteError]
    reason: str
    grpc_code: str
    grpc_number: int
    http_status: int
    title: str


KINDS: tuple[Kind, ...] = (
    Kind(ArgumentError, "INVALID_ARGUMENT", "INVALID_ARGUMENT", 3, 400, "Invalid argument"),
    Kind(ModelError, "INVALID_MODEL", "INVALID_ARGUMENT", 3, 422, "Invalid model"),
    Kind(NotFoundError, "NOT_FOUND", "NOT_FOUND", 5, 404, "Not found"),
    Kind(PermissionDeniedError, "PERMISSION_DENIED", "PERMISSION_DENIED", 7, 403, "Permission denied"),
    Kind(UnauthenticatedError, "UNAUTHENTICATED", "UNAUTHENTICATED", 16, 401, "Unauthenticated"),
    Kind(LimitError, "LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", 8, 429, "Limit exceeded"),
    Kind(DivergedError, "DIVERGED", "FAILED_PRECONDITION", 9, 409, "Diverged"),
    Kind(UnavailableError, "UNAVAILABLE", "UNAVAILABLE", 14, 503, "Unavailable"),
    Kind(DeadlineError, "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", 4, 504, "Deadline exceeded"),
    Kind(CancelledError, "CANCELLED", "CANCELLED", 1, 499, "Cancelled"),
    Kind(DataLossError, "DATA_LOSS", "DATA_LOSS", 15, 500, "Data loss"),
    Kind(InternalError, "INTERNAL", "INTERNAL", 13, 500, "Internal error"),
)

_KIND_BY_REASON = {kind.reason: kind for kind in KINDS}


def kind_of(error: BaseException) -> Kind:
    """Return the table row of an exception; anything that is not a RevoluteError counts as INTERNAL."""
    reason = error.reason if isinstance(error, RevoluteError) else InternalError.reason
    return _KIND_BY_REASON.get(reason, _KIND_BY_REASON[InternalError.reason])


def error_from(reason: str, message: str, argument: str | None = None) -> RevoluteError:
    """Build the exception that a reason received over the wire stands for.

    Args:
        reason: value of `ErrorInfo.reason` or of the HTTP problem's `reason`.
        message: one-line text, kept as it is.
        argument: name of the argument at fault, or None.

    Returns:
        An instance of the class in `KINDS`; InternalError for a reason this client does not know.
    """
    kind = _KIND_BY_REASON.get(reason, _KIND_BY_REASON[InternalError.reason])
    return kind.error(message, argument=argument or None)
