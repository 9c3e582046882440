"""The current call, as a context variable: logs, errors, quotas and traces read it."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass, field

from .caller import ANONYMOUS, Caller


@dataclass
class Call:
    """One call, from its first byte to the last one of its answer.

    Attributes:
        id: id in logs and errors.
        transport: "grpc" or "http".
        verb: `Service.Rpc`; over HTTP it is known after routing.
        caller: the caller; None until the call is admitted.
        reason: reason of the error that ended the call; "OK" on success.
        message: text of that error.
        peer: address of the client's host.
        deadline: time at which the client stops waiting, in s of the monotonic clock; None for no deadline.
        started: time of the first byte, in s of the monotonic clock.
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
    """Return the current call; None outside of a call."""
    return _current.get()


def set_call(call: Call) -> None:
    """Set the current call for the rest of this task."""
    _current.set(call)


def name_call(verb: str) -> None:
    """Set the verb of the current call."""
    if call := _current.get():
        call.verb = verb


def current_client() -> str:
    """Return the client to charge for the current call: the name of its token, or without tokens its host."""
    call = _current.get()
    if call is None:
        return "server"
    if call.caller is not None and call.caller is not ANONYMOUS:
        return call.caller.name
    return call.peer


def current_deadline() -> float | None:
    """Return the deadline of the current call, in s of the monotonic clock; None for no deadline."""
    call = _current.get()
    return call.deadline if call is not None else None
