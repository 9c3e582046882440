"""Measures the growth of the server's memory over a million small calls and 100,000 sessions.

    python -m benchmarks.service.leak [--calls 1000000] [--cycles 100000] [--seconds 7200] [--out leak.json]

A server that leaks two kilobytes per call proves that the test detects a leak.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import sys
import time
from typing import Any

import grpc
import numpy as np

import revolute
from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.parts import to_parts
from revolute.contract.v1 import server_pb2, session_pb2
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.stubs import Stub

from . import verdict
from .gauges import Gauges

LIMIT = 50e6
"""Bytes by which the memory may grow over a million calls and 100,000 sessions."""

AT_ONCE = 16
"""Calls under way together."""

WARM_UP = 2000
"""Calls before the first look at the memory: allocators and caches fill."""

SHARES = 50
"""The memory is looked at that often; in each share are calls and sessions."""

LEAKY, LEAK = "benchmarks.service.leaky_server", 2048
"""A server that leaks, and bytes per small call."""


@dataclasses.dataclass
class Report:
    """What a run found.

    Attributes:
        calls: small calls.
        cycles: sessions that were opened, stepped, read and closed.
        growth: bytes by which the server's resident memory grew.
        growths: the same after each share of the calls and cycles.
        left: sessions, trajectories and bytes that the server counts more than before.
        failed: calls that were not answered, by gRPC code.
    """

    calls: int
    cycles: int
    growth: float
    growths: list[float]
    left: dict[str, float]
    failed: dict[str, int]


class _Client:
    """Makes many calls at once over bare gRPC."""

    def __init__(self, channel: Any, model_id: str, failed: dict[str, int]) -> None:
        self._failed = failed
        self._server = Stub(server_pb2, channel)
        self._sessions = Stub(session_pb2, channel)
        self._model_id = model_id

    async def small_call(self) -> None:
        await self._server.GetServerInfo(server_pb2.GetServerInfoRequest())

    async def session_cycle(self) -> None:
        request = session_pb2.CreateSessionRequest(model_id=self._model_id, batch=1)
        session_id = (await self._sessions.CreateSession(request)).session_id
        start = session_pb2.StepInputs()
        values = fill_message(start, {"session_id": session_id, "ctrl": np.ones(1), "steps": 1})
        async for _ in self._sessions.Step(to_parts(session_pb2.StepRequest, start, values)):
            pass
        async for _ in self._sessions.GetState(session_pb2.GetStateRequest(session_id=session_id)):
            pass
        await self._sessions.DeleteSession(session_pb2.DeleteSessionRequest(session_id=session_id))

    async def repeat(self, call: Any, count: int) -> None:
        """Make a call `count` times, some at once."""
        left = iter(range(count))

        async def work() -> None:
            for _ in left:
                try:
                    await call()
                except grpc.aio.AioRpcError as error:
                    code = error.code().name
                    self._failed[code] = self._failed.get(code, 0) + 1

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _work(target: str, model_id: str, failed: dict[str, int], calls: int, cycles: int) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        client = _Client(channel, model_id, failed)
        await client.repeat(client.small_call, calls)
        await client.repeat(client.session_cycle, cycles)


def run(server: ServerProcess, calls: int, cycles: int, seconds: float = math.inf) -> Report:
    """Call a server that nobody else uses, and compare its memory before and after.

    Args:
        server: the server.
        calls: small calls.
        cycles: sessions that are opened, stepped, read and closed.
        seconds: after which no further share of these is begun.
    """
    gauges, began = Gauges(server.http), time.monotonic()
    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(CART)
    report = Report(0, 0, 0.0, [], {}, {})
    asyncio.run(_work(server.grpc_target, model.id, report.failed, WARM_UP, WARM_UP // 10))
    before = gauges.read()
    for number in range(1, SHARES + 1):
        if time.monotonic() - began > seconds:
            break
        share = calls * number // SHARES - report.calls, cycles * number // SHARES - report.cycles
        asyncio.run(_work(server.grpc_target, model.id, report.failed, *share))
        report.calls, report.cycles = report.calls + share[0], report.cycles + share[1]
        report.growths.append(gauges.read()["resident"] - before["resident"])
        if seconds < math.inf:
            print(
                f"{report.calls} calls, {report.cycles} cycles: {report.growths[-1]:g}",
                file=sys.stderr,
                flush=True,
            )
    after = gauges.read()
    gauges.close()
    report.growth = after["resident"] - before["resident"]
    report.left = {name: after[name] - before[name] for name in ("sessions", "trajectories", "memory_bytes")}
    return report


def main() -> int:
    """Run the long form, then a server that leaks, for as many calls as make twice the limit."""
    parser = verdict.parser(__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--cycles", type=int, default=100_000)
    parser.add_argument(
        "--planted", type=int, default=int(2 * LIMIT / LEAK), help="calls of the one that leaks"
    )
    chosen = parser.parse_args()
    with running_server() as server:
        honest = run(server, chosen.calls, chosen.cycles, chosen.seconds)
    with running_server(module=LEAKY) as server:
        leaky = run(server, chosen.planted, 0)
    summary = (
        f"{honest.calls} small calls and {honest.cycles} session cycles: memory grew by "
        f"{honest.growth / 1e6:.1f} MB; with a planted leak by {leaky.growth / 1e6:.1f} MB over "
        f"{leaky.calls} calls; limit {LIMIT / 1e6:.0f} MB"
    )
    wrong = [f"{number:g} {name} left" for name, number in honest.left.items() if number]
    wrong += [f"{number} calls ended with {code}" for code, number in honest.failed.items()]
    wrong += [f"memory grew by {honest.growth / 1e6:.1f} MB"] if honest.growth > LIMIT else []
    wrong += ["the planted leak was not seen"] if leaky.growth <= LIMIT else []
    found = {"honest": dataclasses.asdict(honest), "planted": dataclasses.asdict(leaky)}
    return verdict.finish(chosen.out, summary, found, wrong)


if __name__ == "__main__":
    sys.exit(main())
