"""Limits on the calls and on the computed steps of one client per second.

Each client has one number per limit: the time t until which it has used up its rate r. A use of n at the time
`now` sets

    t = max(t, now) + n / r    (1)

and a client may run ahead of the clock by t - now <= 1 s, or by one call if that takes longer. This is a
token bucket with room for one second (the generic cell rate algorithm of ATM), without timers or locks.

Calls are used up when they are admitted, steps when the engine gets them. So a call may take more steps than
are left; the client's next calls then wait until they are paid for.

A client is the name of a token, or a host on a server without tokens. Each server counts on its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from revolute.contract.errors import LimitError

from .call import current_call, current_client

_AHEAD = 1.0
"""Seconds by which a client may run ahead of its rate."""

_FEWEST_CLIENTS = 1024
"""Clients that are remembered before the idle ones are looked for."""


class Rates:
    """Counts what each client uses per second.

    Args:
        calls: calls per second of a client; None for no bound.
        steps: computed steps per second of a client, summed over environments; None for no bound.
        refused: is told the name of the limit, "calls" or "steps", at each refusal.
        clock: returns the time in s.
    """

    def __init__(
        self,
        calls: float | None = None,
        steps: float | None = None,
        refused: Callable[[str], object] = lambda limit: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._default_calls = calls
        self._default_steps = steps
        self._refused = refused
        self._calls = _Meter(clock)
        self._steps = _Meter(clock)

    def admit(self, computes: bool) -> None:
        """Count the current call.

        Args:
            computes: whether it needs the engine, so that it waits for steps to be paid for.

        Raises:
            LimitError: the client has made too many calls or taken too many steps in the last seconds.
        """
        calls, steps = self._of_caller()
        if computes and steps is not None:
            self._check("steps", steps, self._steps.seconds_ahead(current_client()) - _AHEAD)
        if calls is not None:
            client, longest = current_client(), max(_AHEAD, 1 / calls)
            self._check("calls", calls, self._calls.seconds_ahead(client) + 1 / calls - longest)
            self._calls.use(client, 1 / calls)

    def use_steps(self, count: int) -> None:
        """Count steps that the engine takes for the current call."""
        _, steps = self._of_caller()
        if steps is not None and count:
            self._steps.use(current_client(), count / steps)

    def _of_caller(self) -> tuple[float | None, float | None]:
        """Return calls and steps per second of the current caller; those of its token come first."""
        call = current_call()
        if call is None:
            return None, None
        own = call.caller
        if own is None:
            return self._default_calls, self._default_steps
        return (
            self._default_calls if own.calls_per_second is None else own.calls_per_second,
            self._default_steps if own.steps_per_second is None else own.steps_per_second,
        )

    def _check(self, limit: str, rate: float, wait: float) -> None:
        # a rounding error is not a reason to refuse
        if wait <= 1e-9:
            return
        self._refused(limit)
        flag = {"calls": "--max-client-rate", "steps": "--max-client-steps"}[limit]
        raise LimitError(
            f"{limit}: expected at most {rate:.12g} {limit} of one client per second, got more; "
            f"call again in {wait:.2g} s, or ask for a token with a higher rate, or for a higher {flag}",
            argument=limit,
            retry_after=wait,
        )


class _Meter:
    """The time until which each client has used up its rate, t of (1); clients without one are not ahead."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._most = _FEWEST_CLIENTS

    def seconds_ahead(self, client: str) -> float:
        """Return t - now, at least zero."""
        return max(0.0, self._until.get(client, 0.0) - self._clock())

    def use(self, client: str, seconds: float) -> None:
        """Add to the time of a client: (1)."""
        now = self._clock()
        self._until[client] = max(self._until.get(client, 0.0), now) + seconds
        if len(self._until) > self._most:
            self._until = {name: until for name, until in self._until.items() if until > now}
            self._most = max(_FEWEST_CLIENTS, 2 * len(self._until))
