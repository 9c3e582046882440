"""Exceptions of revolute. Classes and texts are the same in process, over gRPC and over HTTP.

The table `KINDS` maps each class to its reason, its gRPC status code and its HTTP status. Engine, server and
client use the same table, so an error keeps its class on every transport. Messages are one line of the form

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
"""Largest number of characters of a message. gRPC clients accept at most 8 KiB of trailing metadata."""

_LONGEST_NAME, _LONGEST_VALUE = 120, 300
"""Largest number of characters of a quoted argument name and of a quoted value."""


class RevoluteError(Exception):
    """Base of all exceptions that revolute raises on purpose.

    Attributes:
        reason: kind of failure in UPPER_SNAKE_CASE, stable across releases.
        argument: name of the wrong argument or field; None if it is not a single one.
        message: the one-line text, equal to `str(error)`.
        call_id: id of the call in the server's log; None in process.
        retry_after: seconds after which the same call may succeed; None if unknown.
    """

    reason: str = "INTERNAL"
    call_id: str | None = None

    def __init__(
        self, message: str, *, argument: str | None = None, retry_after: float | None = None
    ) -> None:
        # no transport can carry a lone surrogate; show it as an escape
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
            argument: name of the wrong argument, as the caller wrote it.
            what: the accepted value, shape or unit.
            got: the value found, formatted with `str` and shortened.
            at: position of the value in the argument.
            advice: how to fix it.
        """
        name, value = shortened(argument, _LONGEST_NAME), shortened(str(got), _LONGEST_VALUE)
        where = f" at {shortened(at, _LONGEST_VALUE)}" if at else ""
        cure = f"; {advice}" if advice else ""
        return cls(f"{name}: expected {what}, got {value}{where}{cure}", argument=name)


def shortened(text: str, longest: int) -> str:
    """Return a text, truncated to `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


class ArgumentError(RevoluteError, ValueError):
    """An argument has a wrong shape, type, value or name."""

    reason = "INVALID_ARGUMENT"


class ModelError(RevoluteError, ValueError):
    """A model file cannot be read, or uses something unsupported. The text names file and element.

    `argument` is always "model"; the text begins with the file's name.
    """

    reason = "INVALID_MODEL"

    def __init__(
        self, message: str, *, argument: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, argument="model", retry_after=retry_after)


class NotFoundError(RevoluteError, LookupError):
    """A model, session or trajectory does not exist, or was deleted, or belongs to another caller."""

    reason = "NOT_FOUND"

    @classmethod
    def missing(
        cls, noun: str, identifier: str, why: str = "it was deleted or made elsewhere"
    ) -> NotFoundError:
        """Return the error for an unknown id.

        Args:
            noun: "model", "session" or "trajectory".
            identifier: the unknown id.
            why: probable cause.
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
    """The caller's role does not allow the call, or the model to delete belongs to another caller."""

    reason = "PERMISSION_DENIED"


class UnauthenticatedError(PermissionDeniedError):
    """The server requires a token, and the call's token is missing or unknown."""

    reason = "UNAUTHENTICATED"


class LimitError(RevoluteError, RuntimeError):
    """A request exceeds a limit of the server. The text names the limit, the size and the setting."""

    reason = "LIMIT_EXCEEDED"


class DivergedError(RevoluteError, RuntimeError):
    """Every environment diverged (non-finite states), so there is no gradient."""

    reason = "DIVERGED"


class UnavailableError(RevoluteError, RuntimeError):
    """No engine or server can be reached. The text names the address and what to do.

    Attributes:
        permanent: whether retrying is pointless, e.g. because another kind of server answers.
    """

    reason = "UNAVAILABLE"
    permanent = False


class DeadlineError(UnavailableError, TimeoutError):
    """The caller's timeout expired before the answer arrived."""

    reason = "DEADLINE_EXCEEDED"


class CancelledError(RevoluteError, RuntimeError):
    """The work was cancelled by its caller."""

    reason = "CANCELLED"


class DataLossError(RevoluteError, RuntimeError):
    """The server's record of this id is damaged. Other records are not affected."""

    reason = "DATA_LOSS"


class InternalError(RevoluteError, RuntimeError):
    """A bug in revolute; please report it."""

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
        title: short text, the same for every error of this kind (RFC 9457 `title`).
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
    """Return the table row of an exception. Exceptions other than RevoluteError count as INTERNAL."""
    reason = error.reason if isinstance(error, RevoluteError) else InternalError.reason
    return _KIND_BY_REASON.get(reason, _KIND_BY_REASON[InternalError.reason])


def error_from(reason: str, message: str, argument: str | None = None) -> RevoluteError:
    """Build an exception from a reason received over the wire.

    Args:
        reason: value of `ErrorInfo.reason` or of the HTTP problem's `reason`.
        message: one-line text, used unchanged.
        argument: name of the wrong argument, or None.

    Returns:
        An instance of the class in `KINDS`; InternalError for an unknown reason.
    """
    kind = _KIND_BY_REASON.get(reason, _KIND_BY_REASON[InternalError.reason])
    return kind.error(message, argument=argument or None)
