"""Checks regularly whether the store answers, so that readiness is known before a call fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from revolute.contract.errors import RevoluteError

from ..store import Store
from ..time_limit import within

_log = logging.getLogger("revolute.server")

_EVERY_SECONDS = 0.4
_ANSWER_SECONDS = 1.0
"""Time limit of a check. A dead store is noticed after at most the sum of both times, within 2 s."""


class StoreWatch:
    """Checks a store at regular intervals.

    Args:
        store: the open store.

    Attributes:
        answers: whether the last check succeeded.
        changed: called when `answers` has changed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self.answers = True
        self.changed: Callable[[], Awaitable[None]] = _nothing

    def start(self) -> None:
        """Check the store regularly, until `stop`."""
        self._task = asyncio.create_task(self._check_forever(), name="store watch")

    async def stop(self) -> None:
        """Stop checking."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _check_forever(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            fault = await self._fault()
            if self.answers != (fault is None):
                self.answers = fault is None
                if fault is None:
                    _log.warning("the store answers again; ready")
                else:
                    _log.warning("the store does not answer; not ready until it does: %s", fault)
                await self.changed()

    async def _fault(self) -> str | None:
        """Check the store; return a description of the fault, or None."""
        try:
            await within(_ANSWER_SECONDS, self._store.check())
        except asyncio.TimeoutError:
            return f"no answer within {_ANSWER_SECONDS:g} s"
        except RevoluteError as error:
            return str(error)
        except Exception as error:
            _log.exception("the store cannot be asked")
            return type(error).__name__
        return None


async def _nothing() -> None:
    """Do nothing."""
