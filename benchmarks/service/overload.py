"""Sends ten times more calls than the server can answer: it must refuse at once, survive, and recover.

    python -m benchmarks.service.overload [--seconds 60] [--out overload.json]

First the rate is measured that the server sustains, then ten times as many calls come, spread evenly, from a
process of their own. Meanwhile health is asked over both transports. The calls differ in length, so that the
server cannot compute them together.
"""

from __future__ import annotations

import asyncio
import dataclasses
import multiprocessing
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
import httpx
import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc

import revolute
from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.parts import to_parts
from revolute.contract.v1 import trajectory_pb2
from testbed.server_process import ServerProcess, running_server

from ..laikago import POSE, START
from . import verdict
from .gauges import Gauges

FLAGS = ("--queue", "8", "--memory", "256MiB")
CAP = 256 * 1024**2
STEPS = 600
LENGTHS = 64
"""Different lengths of calls."""

OVERLOAD = 10


@dataclasses.dataclass
class Report:
    """What a run found; times in ms.

    Attributes:
        capacity: calls per second that the server sustains.
        offered: calls per second that came.
        answered: calls that were answered.
        refused: calls that were refused with a hint when to come again.
        failed: any other end, by gRPC code.
        refusal_ms: time of each refusal.
        health_ms: time of each question for health.
        most_bytes: most bytes that the server counted, and that it occupied beyond those when idle.
        normal_after: seconds after which a call was answered as fast as before.
    """

    capacity: float = 0.0
    offered: float = 0.0
    answered: int = 0
    refused: int = 0
    failed: dict[str, int] = dataclasses.field(default_factory=dict)
    refusal_ms: list[float] = dataclasses.field(default_factory=list)
    health_ms: list[float] = dataclasses.field(default_factory=list)
    most_bytes: tuple[float, float] = (0.0, 0.0)
    normal_after: float = float("inf")

    def summary(self) -> dict[str, Any]:
        """Return the report with percentiles instead of lists."""
        found = dataclasses.asdict(self)
        for name in ("refusal_ms", "health_ms"):
            values = found.pop(name) or [float("nan")]
            found[name] = {f"{share} %": float(np.quantile(values, share / 100)) for share in (50, 99)}
        return found


async def _offer(target: str, model_id: str, nv: int, rate: float, seconds: float) -> dict[str, Any]:
    """Send calls at a rate, whatever becomes of them."""
    ends: dict[str, int] = {}
    refusals: list[float] = []
    request = trajectory_pb2.ValueAndGradientRequest
    loss = revolute.Loss([revolute.Term("qpos")]).to_dict()
    requests = []
    for extra in range(LENGTHS):
        inputs = {
            "model_id": model_id,
            "qpos": START,
            "qvel": np.zeros(nv),
            "ctrl": np.tile(POSE, (STEPS + extra, 1)),
        }
        start = trajectory_pb2.ValueAndGradientInputs()
        values = fill_message(start, {"inputs": inputs, "loss": loss, "wrt": ["qvel"]})
        requests.append([part.SerializeToString() for part in to_parts(request, start, values)])
    async with grpc.aio.insecure_channel(target) as channel:
        call: Any = channel.stream_stream("/revolute.v1.TrajectoryService/ValueAndGradient")

        async def one(number: int) -> None:
            began = time.monotonic()
            try:
                async for _ in call(iter(requests[number % LENGTHS]), timeout=60.0):
                    pass
                end = "OK"
            except grpc.aio.AioRpcError as error:
                end = error.code().name
                if end == "RESOURCE_EXHAUSTED":
                    refusals.append(1e3 * (time.monotonic() - began))
            ends[end] = ends.get(end, 0) + 1

        began, tasks, number = time.monotonic(), set(), 0
        while (now := time.monotonic() - began) < seconds:
            while number < rate * now:
                task = asyncio.ensure_future(one(number))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                number += 1
            await asyncio.sleep(min(0.005, 1 / rate))
        await asyncio.gather(*tasks)
    return {"ends": ends, "refusals": refusals, "offered": number / seconds}


def _offer_in_process(done: Any, *arguments: Any) -> None:
    done.put(asyncio.run(_offer(*arguments)))


class _Health(threading.Thread):
    """Asks for health over both transports until it is stopped."""

    def __init__(self, server: ServerProcess) -> None:
        super().__init__()
        self.taken: list[float] = []
        self._channel = grpc.insecure_channel(server.grpc_target)
        self._client = httpx.Client(base_url=server.http)
        self._end = threading.Event()

    def run(self) -> None:
        stub: Any = health_pb2_grpc.HealthStub(self._channel)
        asks: list[Callable[[], Any]] = [
            lambda: stub.Check(health_pb2.HealthCheckRequest()),
            lambda: self._client.get("/livez").raise_for_status(),
        ]
        for ask in asks:
            ask()
        while not self._end.wait(0.02):
            for ask in asks:
                began = time.monotonic()
                ask()
                self.taken.append(1e3 * (time.monotonic() - began))

    def stop(self) -> None:
        self._end.set()
        self.join()
        self._channel.close()
        self._client.close()


def run(server: ServerProcess, seconds: float) -> Report:
    """Overload a server that was started with FLAGS."""
    report, gauges = Report(), Gauges(server.http)
    context = multiprocessing.get_context("spawn")
    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model("laikago", timestep=2e-3, contact_model="hard", iterations=500)
        ctrl = np.tile(POSE, (STEPS, 1))
        loss = revolute.Loss([revolute.Term("qpos")])

        def call() -> float:
            began = time.monotonic()
            simulator.value_and_gradient(model, START, np.zeros(model.nv), ctrl, loss, wrt=("qvel",))
            return time.monotonic() - began

        call()
        alone = min(call() for _ in range(3))
        workers = simulator.server_info()["build"]["workers"]
        report.capacity = workers / alone
        idle = gauges.read()
        done: Any = context.Queue()
        rate = OVERLOAD * report.capacity
        arguments = done, server.grpc_target, model.id, model.nv, rate, seconds
        load = context.Process(target=_offer_in_process, args=arguments, daemon=True)
        load.start()
        health = _Health(server)
        health.start()
        found = None
        counted = occupied = 0.0
        while found is None:
            now = gauges.read()
            counted = max(counted, now["memory_bytes"])
            occupied = max(occupied, now["resident"] - idle["resident"])
            try:
                found = done.get(timeout=0.25)
            except queue.Empty:
                continue
        ended = time.monotonic()
        while call() > 2 * alone and time.monotonic() - ended < 60:
            pass
        report.normal_after = time.monotonic() - ended
        health.stop()
        load.join()
    report.health_ms, report.refusal_ms = health.taken, found["refusals"]
    report.offered, report.most_bytes = found["offered"], (counted, occupied)
    report.answered = found["ends"].pop("OK", 0)
    report.refused = found["ends"].pop("RESOURCE_EXHAUSTED", 0)
    report.failed = found["ends"]
    gauges.close()
    return report


def main() -> int:
    """Run the long form."""
    parser = verdict.parser(__doc__, seconds=60.0)
    chosen = parser.parse_args()
    with running_server(*FLAGS) as server:
        found = run(server, chosen.seconds).summary()
    counted, occupied = (number / 1e6 for number in found["most_bytes"])
    summary = (
        f"{found['offered'] / found['capacity']:.0f} x overload for {chosen.seconds:g} s "
        f"({found['offered']:.0f} calls/s): {found['answered']} answered, {found['refused']} refused, "
        f"99 % within {found['refusal_ms']['99 %']:.1f} ms, "
        f"health 99 % within {found['health_ms']['99 %']:.1f} ms; "
        f"{counted:.0f} MB counted, {occupied:.0f} MB occupied of {CAP / 1e6:.0f} MB; "
        f"normal after {found['normal_after']:.2f} s"
    )
    wrong = [f"{number} calls ended with {code}" for code, number in found["failed"].items()]
    wrong += [f"{counted:.0f} MB counted, more than the cap"] if counted > CAP / 1e6 else []
    return verdict.finish(chosen.out, summary, found, wrong)


if __name__ == "__main__":
    sys.exit(main())
