"""Calls of every verb that computes, cancelled at random moments: the engine stops, and nothing is left.

    python -m benchmarks.service.cancel [--count 1000] [--seed 0] [--out cancel.json]

The model takes some tenths of a millisecond per step, so that every call would take far longer than it is
given. After each round the time is taken until the server says that no worker computes and no call waits.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import numpy as np
from google.protobuf.message_factory import GetMessageClass

import revolute
from revolute.codec.documents import fill_message
from revolute.codec.parts import to_parts
from revolute.v1 import session_pb2, trajectory_pb2
from tests.server.processes import ServerProcess, running_server

from ..laikago import POSE, START
from . import verdict
from .gauges import Gauges

STEPS = 20_000
"""Of rollouts that take longer than LATEST: of one that is over, the server may have sent all of its answer
before its caller cancels, and then knows nothing of that."""

TOGETHER = 4
"""Calls of one round."""

LATEST = 0.08
"""Seconds after which a call is cancelled at the latest."""

PATIENCE = 5.0
"""Seconds after which the engine counts as stuck."""

_SERVICES = {"SessionService": session_pb2, "TrajectoryService": trajectory_pb2}


@dataclasses.dataclass
class Report:
    """What a run found.

    Attributes:
        cancelled: calls that ended as cancelled, by verb.
        answered: calls that were faster, by verb.
        idle_ms: time until the engine was idle, of each round.
        left: what the server holds more than before: sessions, trajectories, bytes.
    """

    cancelled: dict[str, int] = dataclasses.field(default_factory=dict)
    answered: dict[str, int] = dataclasses.field(default_factory=dict)
    idle_ms: list[float] = dataclasses.field(default_factory=list)
    left: dict[str, float] = dataclasses.field(default_factory=dict)


class _Caller:
    """Starts calls over bare gRPC, so that they can be cancelled."""

    def __init__(self, target: str) -> None:
        self.channel = grpc.insecure_channel(target)

    def start(self, name: str, document: Mapping[str, Any]) -> Any:
        """Begin a call, e.g. of "TrajectoryService.Rollout", and return it."""
        service, _, method = name.partition(".")
        rpc = _SERVICES[service].DESCRIPTOR.services_by_name[service].methods_by_name[method]
        request = GetMessageClass(rpc.input_type)
        inner: Any = request.DESCRIPTOR.fields_by_name["start"].message_type
        start = GetMessageClass(inner)()
        parts = list(to_parts(request, start, fill_message(start, document)))
        path = f"/revolute.v1.{service}/{method}"
        encode, decode = request.SerializeToString, GetMessageClass(rpc.output_type).FromString
        if rpc.server_streaming:
            return self.channel.stream_stream(path, encode, decode)(iter(parts))
        return self.channel.stream_unary(path, encode, decode).future(iter(parts))


def _works(simulator: revolute.Simulator) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rpcs with requests that would take seconds."""
    model = simulator.load_model("laikago", timestep=2e-3, iterations=1000)
    qvel, ctrl = np.zeros(model.nv), np.tile(POSE, (STEPS, 1))
    inputs = {"model_id": model.id, "qpos": START, "qvel": qvel, "ctrl": ctrl}
    session = simulator.session(model, 1)
    session.reset(START, qvel)
    yield "SessionService.Step", {"session_id": session.id, "ctrl": POSE, "steps": 10**7}
    many = simulator.session(model, 256)
    many.reset(START, qvel)
    yield "SessionService.Jacobian", {"session_id": many.id, "ctrl": POSE}
    yield "TrajectoryService.Rollout", inputs
    yield "TrajectoryService.StreamRollout", {"inputs": inputs}
    loss = revolute.Loss([revolute.Term("qpos")]).to_dict()
    yield "TrajectoryService.ValueAndGradient", {"inputs": inputs, "loss": loss}
    yield "TrajectoryService.CheckGradient", {"model_id": model.id, "qpos": START, "steps": 100}
    for checkpoints in ("every", "slots=8"):
        kept = simulator.rollout(model, START, qvel, ctrl[:400], checkpoints=checkpoints)
        bars = np.ones((16, *kept.qpos.shape))
        yield "TrajectoryService.Backward", {"trajectory_id": kept.detach(), "qpos_bar": bars}
    yield (
        "TrajectoryService.Jvp",
        {"trajectory_id": kept.id, "qpos_tan": np.ones(model.nv)},
    )


def run(server: ServerProcess, count: int, seed: int, seconds: float = math.inf) -> Report:
    """Cancel `count` calls of a server that nobody else uses, or as many as fit into the time."""
    end = time.monotonic() + seconds
    dice, report = random.Random(seed), Report()
    gauges, caller = Gauges(server.http), _Caller(server.grpc_target)
    with revolute.connect(server.grpc) as simulator:
        works = list(_works(simulator))
        before = gauges.read()
        for _ in range(0, count, TOGETHER):
            if time.monotonic() > end:
                break
            calls = [(name, caller.start(name, request)) for name, request in dice.choices(works, k=TOGETHER)]
            for _, call in calls:
                time.sleep(dice.uniform(0, LATEST) / TOGETHER)
                call.cancel()
            report.idle_ms.append(1e3 * gauges.wait_idle(PATIENCE))
            for name, call in calls:
                ended = report.cancelled if call.cancelled() else report.answered
                ended[name] = ended.get(name, 0) + 1
        after = gauges.read()
        for name in ("sessions", "trajectories", "memory_bytes", "queue_length", "workers_busy"):
            report.left[name] = after[name] - before[name]
        # the server is as usable as before
        model = simulator.load_model("laikago")
        assert simulator.rollout(model, START, np.zeros(model.nv), np.tile(POSE, (5, 1))).status == 0
    caller.channel.close()
    gauges.close()
    return report


def main() -> int:
    """Run the long form."""
    parser = verdict.parser(__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with running_server() as server:
        report = run(server, chosen.count, chosen.seed, chosen.seconds)
    idle = sorted(report.idle_ms)
    times = {
        "median": statistics.median(idle),
        "99 %": idle[int(0.99 * (len(idle) - 1))],
        "longest": idle[-1],
    }
    cancelled, left = sum(report.cancelled.values()), {name: n for name, n in report.left.items() if n}
    summary = (
        f"{cancelled} calls cancelled at random moments ({sum(report.answered.values())} were faster): "
        f"engine idle after {times['median']:.1f} ms (median), {times['99 %']:.1f} ms (99 %), "
        f"{times['longest']:.1f} ms (longest); {len(left)} kinds of slots leaked"
    )
    found = {
        "cancelled": report.cancelled,
        "answered": report.answered,
        "idle_ms": times,
        "left": report.left,
    }
    return verdict.finish(chosen.out, summary, found, [f"{n:g} {name} left" for name, n in left.items()])


if __name__ == "__main__":
    sys.exit(main())
