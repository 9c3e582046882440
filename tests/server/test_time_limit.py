"""A time limit ends late work, and loses no cancellation in any turn of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from revolute_server.domain.store_watch import StoreWatch
from revolute_server.time_limit import within

TURNS = 12
"""More turns of the event loop than two checks of the watch take."""


async def after(turns: int, result: str = "done") -> str:
    """Return after so many turns of the event loop."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return result


def test_late_work_is_cancelled_and_other_work_answers() -> None:
    async def run() -> None:
        assert await within(5.0, after(3)) == "done"
        late = asyncio.ensure_future(asyncio.sleep(60))
        with pytest.raises(asyncio.TimeoutError):
            await within(0.01, late)
        assert late.cancelled()

    asyncio.run(run())


@pytest.mark.parametrize("turns", range(1, 8))
def test_a_cancellation_arrives_in_whichever_turn(turns: int) -> None:
    async def run() -> None:
        caller = asyncio.ensure_future(within(60.0, after(2)))
        await after(turns)
        if caller.cancel():
            with pytest.raises(asyncio.CancelledError):
                await caller
        else:
            assert caller.result() == "done"

    asyncio.run(run())


class _Store:
    """A store that answers in the third turn of the event loop."""

    async def check(self) -> None:
        await after(2)


@pytest.mark.parametrize("turns", range(TURNS))
def test_the_watch_of_the_store_stops_in_whichever_turn(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It once went on for ever, and the close of the store with it."""
    monkeypatch.setattr("revolute_server.domain.store_watch._EVERY_SECONDS", 0.0)

    async def run() -> None:
        watch = StoreWatch(_Store())  # type: ignore[arg-type]
        watch.start()
        await after(turns)
        stopping = asyncio.ensure_future(watch.stop())
        done, _ = await asyncio.wait((stopping,), timeout=10.0)
        assert done, "the watch goes on"

    loop = asyncio.new_event_loop()
    try:
        # not asyncio.run, which waits for all tasks
        loop.run_until_complete(run())
    finally:
        loop.close()
