"""Who calls: a name and a role, known to everything that a call runs through.

The transports set the caller of each call; quotas, logs and the check of owners ask for it. Without a token
file everybody who can reach the server is `ANONYMOUS` and may do everything.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from dataclasses import dataclass

from revolute.errors import PermissionDeniedError


class Role(enum.IntEnum):
    """What a caller may do; each role includes those below it."""

    READ = 1
    RUN = 2
    ADMIN = 3


@dataclass(frozen=True)
class Caller:
    """The holder of a token."""

    name: str
    role: Role


ANONYMOUS = Caller("anonymous", Role.ADMIN)
"""Everybody, on a server without tokens."""

_current: ContextVar[Caller] = ContextVar("caller", default=ANONYMOUS)


def current_caller() -> Caller:
    """Return the caller of the call that runs now."""
    return _current.get()


def set_caller(caller: Caller) -> None:
    """Say who calls, for the rest of this task."""
    _current.set(caller)


def caller_name() -> str:
    """Return the name of the current caller, the owner of what the call makes."""
    return _current.get().name


def require_owner(noun: str, owner: str) -> None:
    """Refuse to change or delete what belongs to another caller; an admin may.

    Args:
        noun: "model", "session" or "trajectory".
        owner: name of the caller who made it.

    Raises:
        PermissionDeniedError: it is another's.
    """
    caller = current_caller()
    if caller.name != owner and caller.role < Role.ADMIN:
        raise PermissionDeniedError.expected(
            f"{noun}_id",
            f"a {noun} of {caller.name!r}",
            f"one of {owner!r}",
            advice="only its owner and an admin may change or delete it",
        )
