"""The caller of the current call: a name and a role, as a context variable.

The transports set the caller of each call; quotas, logs and owner checks read it. Without a token file every
caller is `ANONYMOUS` and may do everything.

Sessions, trajectories and worlds belong to the token that created them. Other callers get NOT_FOUND for
them, except admins. All callers share models; see `models`.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from dataclasses import dataclass

from revolute.contract.errors import PermissionDeniedError


class Role(enum.IntEnum):
    """Permissions of a caller; each role includes the lower ones."""

    READ = 1
    RUN = 2
    ADMIN = 3


@dataclass(frozen=True)
class Caller:
    """The holder of a token.

    Attributes:
        name: who it is.
        role: what it may do.
        calls_per_second: calls that it may make; None for the server's default.
        steps_per_second: steps that the engine may take for it; None for the server's default.
    """

    name: str
    role: Role
    calls_per_second: float | None = None
    steps_per_second: float | None = None


ANONYMOUS = Caller("anonymous", Role.ADMIN)
"""The caller on a server without tokens."""

_current: ContextVar[Caller] = ContextVar("caller", default=ANONYMOUS)


def current_caller() -> Caller:
    """Return the caller of the current call."""
    return _current.get()


def set_caller(caller: Caller) -> None:
    """Set the caller for the rest of this task."""
    _current.set(caller)


def caller_name() -> str:
    """Return the name of the current caller, who owns the records that the call creates."""
    return _current.get().name


def is_visible(owner: str) -> bool:
    """Tell whether the current caller may see a record.

    Args:
        owner: name of the caller who created it; empty if unknown, so that only admins see it.
    """
    caller = current_caller()
    return caller.name == owner or caller.role >= Role.ADMIN


def require_owner(noun: str, owner: str, act: str) -> None:
    """Raise an error unless the caller is the owner of a shared record or an admin.

    Args:
        noun: kind of the record, "model".
        owner: name of the caller who created it.
        act: the action that is not allowed, e.g. "delete it".

    Raises:
        PermissionDeniedError: another caller owns it.
    """
    if not is_visible(owner):
        raise PermissionDeniedError.expected(
            f"{noun}_id",
            f"a {noun} of {caller_name()!r}",
            "one of another caller",
            advice=f"only its owner and an admin may {act}",
        )
