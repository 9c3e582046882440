"""One call, known to everything that it runs through: logs, errors, quotas and traces ask for it."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass, field

from .caller import ANONYMOUS, Caller


@dataclass
class Call:
    """One call, from its first byte to the last one of its answer.

    Attributes:
        id: name in logs and errors.
        transport: "grpc" or "http".
        verb: `Service.Rpc`; for HTTP known after routing.
        caller: who calls; None until they are let in.
        reason: reason of the error it ended with, "OK" for none.
        message: text of that error.
        peer: address of the host that it comes from.
        deadline: when nobody waits for the answer any more, in s of the monotonic clock; None for never.
        started: time of its first byte, in s of the monotonic clock.
    """

    id: str
    transport: str
    verb: str = "unknown"
    caller: Caller | None = None
    reason: str = "OK"
    message: str = ""
    peer: str = ""
    deadline: float | None = None
    started: float = field(default_factory=time.monotonic)


_current: ContextVar[Call | None] = ContextVar("call", default=None)


def current_call() -> Call | None:
    """Return the call that runs now; None outside of any."""
    return _current.get()


def set_call(call: Call) -> None:
    """Say which call runs now, for the rest of this task."""
    _current.set(call)


def name_call(verb: str) -> None:
    """Say what the call that runs now calls."""
    if call := _current.get():
        call.verb = verb


def current_client() -> str:
    """Name who is charged for the call that runs now: the holder of its token, or without tokens its host."""
    call = _current.get()
    if call is None:
        return "server"
    if call.caller is not None and call.caller is not ANONYMOUS:
        return call.caller.name
    return call.peer


def current_deadline() -> float | None:
    """Return when the caller gives up, in s of the monotonic clock; None for never."""
    call = _current.get()
    return call.deadline if call is not None else None
