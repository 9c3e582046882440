"""Who calls: a name and a role, known to everything that a call runs through.

The transports set the caller of each call; quotas, logs and the checks of owners ask for it. Without a token
file everybody who can reach the server is `ANONYMOUS` and may do everything.

Sessions, trajectories and worlds belong to the name of the token that made them. For the holders of other
tokens they do not exist, except for admins. Models are shared by everybody; see `models`.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar
from dataclasses import dataclass

from revolute.contract.errors import PermissionDeniedError


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


def is_visible(owner: str) -> bool:
    """Tell whether something exists for the current caller.

    Args:
        owner: name of the caller who made it; empty where nobody knows, so that only an admin sees it.
    """
    caller = current_caller()
    return caller.name == owner or caller.role >= Role.ADMIN


def require_owner(noun: str, owner: str) -> None:
    """Refuse to delete what everybody may see and another caller has made; an admin may.

    Args:
        noun: "model".
        owner: name of the caller who made it.

    Raises:
        PermissionDeniedError: it is another's.
    """
    if not is_visible(owner):
        raise PermissionDeniedError.expected(
            f"{noun}_id",
            f"a {noun} of {caller_name()!r}",
            "one of another caller",
            advice="only its owner and an admin may delete it",
        )
