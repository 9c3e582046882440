"""Calls of every verb that computes, given up at random moments: the engine stops, and nothing is left.

    python -m benchmarks.service.cancel [--count 1000] [--seed 0] [--out cancel.json]

A caller gives up by cancelling its call over gRPC, by a deadline over gRPC, or by closing the connection over
HTTP. The model takes some tenths of a millisecond per step, so that every call would take far longer than it
is given; calls with the same number of steps are computed together. After each round the time is taken until
the server says that no worker computes and no call waits.
"""

from __future__ import annotations

import dataclasses
import math
import random
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import grpc
import numpy as np
from google.protobuf.message_factory import GetMessageClass

import revolute
from revolute.contract.codec.documents import fill_message
from revolute.contract.codec.npz import pack_npz
from revolute.contract.codec.parts import to_parts
from revolute.contract.v1 import session_pb2, trajectory_pb2
from revolute.contract.verbs import BY_RPC
from testbed.server_process import ServerProcess, running_server

from ..laikago import POSE, START
from . import verdict
from .gauges import Gauges

STEPS = 20_000
"""Of rollouts that take longer than LATEST: of one that is over, the server may have sent all of its answer
before its caller cancels, and then knows nothing of that."""

KEPT_STEPS = 400
"""Of trajectories that are differentiated."""

TOGETHER = 4
"""Calls of one round."""

LATEST = 0.08
"""Seconds after which a call is given up at the latest."""

PATIENCE = 5.0
"""Seconds after which the engine counts as stuck."""

WAYS = ("cancel", "deadline", "disconnect")
"""How the callers of a round give up."""

_SERVICES = {"SessionService": session_pb2, "TrajectoryService": trajectory_pb2}


@dataclasses.dataclass
class Report:
    """What a run found.

    Attributes:
        given_up: calls that had no answer when their callers gave up, by rpc.
        answered: calls that were faster, by rpc.
        idle_ms: time until the engine was idle, of each round, by way of giving up.
        left: what the server holds more than before: sessions, trajectories, bytes.
    """

    given_up: dict[str, int] = dataclasses.field(default_factory=dict)
    answered: dict[str, int] = dataclasses.field(default_factory=dict)
    idle_ms: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    left: dict[str, float] = dataclasses.field(default_factory=dict)

    def times(self) -> dict[str, dict[str, float]]:
        """Return percentiles of the times, all together and by way."""
        found = {}
        together = [one for values in self.idle_ms.values() for one in values]
        for way, values in {"all": together, **self.idle_ms}.items():
            idle = sorted(values)
            found[way] = {
                "median": statistics.median(idle),
                "99 %": idle[int(0.99 * (len(idle) - 1))],
                "longest": idle[-1],
            }
        return found


@dataclasses.dataclass(frozen=True)
class _Work:
    """A request that would take seconds.

    Attributes:
        rpc: e.g. "TrajectoryService.Rollout".
        parts: the request over gRPC.
        body: the same over HTTP, with its head; empty where HTTP has no such request.
    """

    rpc: str
    parts: tuple[bytes, ...]
    body: bytes

    @classmethod
    def of(cls, rpc: str, document: Mapping[str, Any], *, over_http: bool = True) -> _Work:
        """Write a request."""
        request = GetMessageClass(_descriptor(rpc).input_type)
        inner: Any = request.DESCRIPTOR.fields_by_name["start"].message_type
        start = GetMessageClass(inner)()
        parts = to_parts(request, start, fill_message(start, document))
        body = _http_request(rpc, document) if over_http else b""
        return cls(rpc, tuple(part.SerializeToString() for part in parts), body)


class _Call(Protocol):
    """A call under way."""

    def give_up(self) -> None:
        """Leave without the answer."""

    def was_answered(self) -> bool:
        """Whether the whole answer was there when the caller gave up."""


class _GrpcCall:
    """A call over gRPC that is cancelled, or ends by its deadline."""

    def __init__(self, channel: grpc.Channel, work: _Work, seconds: float | None) -> None:
        descriptor = _descriptor(work.rpc)
        service, _, method = work.rpc.partition(".")
        path = f"/revolute.v1.{service}/{method}"
        parts: Any = iter(work.parts)
        if descriptor.server_streaming:
            self._call: Any = channel.stream_stream(path)(parts, timeout=seconds)
        else:
            self._call = channel.stream_unary(path).future(parts, timeout=seconds)
        self._by_deadline = seconds is not None

    def give_up(self) -> None:
        if self._by_deadline:
            self._call.code()
        else:
            self._call.cancel()

    def was_answered(self) -> bool:
        return self._call.code() is grpc.StatusCode.OK


class _HttpCall:
    """A request over HTTP whose connection is closed."""

    def __init__(self, host: tuple[str, int], work: _Work) -> None:
        self._socket = socket.create_connection(host)
        self._socket.sendall(work.body)
        self._received = b""

    def give_up(self) -> None:
        self._socket.setblocking(False)
        try:
            while piece := self._socket.recv(1 << 20):
                self._received += piece
        except BlockingIOError:
            pass
        self._socket.close()

    def was_answered(self) -> bool:
        # an answer of one document begins when the verb is through
        head = self._received.partition(b"\r\n\r\n")[0].lower()
        is_stream = b"transfer-encoding: chunked" in head
        return self._received.endswith(b"\r\n0\r\n\r\n") if is_stream else bool(self._received)


class _Callers:
    """Starts calls in each way."""

    def __init__(self, server: ServerProcess, dice: random.Random) -> None:
        self._channel = grpc.insecure_channel(server.grpc_target)
        address = urlsplit(server.http)
        self._host = str(address.hostname), int(address.port or 80)
        self._dice = dice

    def start(self, way: str, work: _Work) -> _Call:
        """Begin a call."""
        if way == "disconnect":
            return _HttpCall(self._host, work)
        seconds = self._dice.uniform(0.01, LATEST) if way == "deadline" else None
        return _GrpcCall(self._channel, work, seconds)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


def _descriptor(rpc: str) -> Any:
    service, _, method = rpc.partition(".")
    return _SERVICES[service].DESCRIPTOR.services_by_name[service].methods_by_name[method]


def _http_request(rpc: str, document: Mapping[str, Any]) -> bytes:
    route = BY_RPC[rpc]
    content = pack_npz({name: value for name, value in document.items() if name != route.id_field})
    head = (
        f"POST {route.http_path.format(document.get(route.id_field, ''))} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/x-npz\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def _works(simulator: revolute.Simulator) -> Iterator[_Work]:
    """Yield requests that would take seconds."""
    model = simulator.load_model("laikago", timestep=2e-3, contact_model="hard", iterations=1000)
    qvel, ctrl = np.zeros(model.nv), np.tile(POSE, (STEPS, 1))
    inputs: dict[str, Any] = {"model_id": model.id, "qpos": START, "qvel": qvel, "ctrl": ctrl}
    for _ in range(2):
        session = simulator.session(model, 1)
        session.reset(START, qvel)
        yield _Work.of("SessionService.Step", {"session_id": session.id, "ctrl": POSE, "steps": 10**7})
    many = simulator.session(model, 256)
    many.reset(START, qvel)
    yield _Work.of("SessionService.Jacobian", {"session_id": many.id, "ctrl": POSE})
    one_step = {"model_id": model.id, "qpos": START, "qvel": qvel, "ctrl": np.tile(POSE, (256, 1))}
    yield _Work.of("TrajectoryService.Jacobian", one_step)
    for policy in ("every", "none", "interval=100"):
        yield _Work.of("TrajectoryService.Rollout", {**inputs, "checkpoints": policy})
    batch = {**inputs, "ctrl": np.tile(ctrl[:500], (64, 1, 1))}
    yield _Work.of("TrajectoryService.Rollout", {**batch, "checkpoints": "none"})
    yield _Work.of("TrajectoryService.StreamRollout", {"inputs": inputs})
    loss = revolute.Loss([revolute.Term("qpos")]).to_dict()
    for policy in ("every", "slots=8"):
        given: dict[str, Any] = {"inputs": {**inputs, "checkpoints": policy}, "loss": loss}
        yield _Work.of("TrajectoryService.ValueAndGradient", given)
    yield _Work.of("TrajectoryService.ValueAndGradient", {"inputs": inputs}, over_http=False)
    check = {"model_id": model.id, "qpos": START, "steps": 100}
    yield _Work.of("TrajectoryService.CheckGradient", check)
    for policy in ("every", "interval=20", "slots=8"):
        kept = simulator.rollout(model, START, qvel, ctrl[:KEPT_STEPS], checkpoints=policy)
        bars = np.ones((16, *kept.qpos.shape))
        given = {"trajectory_id": kept.detach(), "qpos_bar": bars}
        yield _Work.of("TrajectoryService.Backward", given)
        given = {"trajectory_id": kept.id, "qpos_tan": np.ones(model.nv)}
        yield _Work.of("TrajectoryService.Jvp", given)


def run(server: ServerProcess, count: int, seed: int, seconds: float = math.inf) -> Report:
    """Give up `count` calls of a server that nobody else uses, or as many as fit into the time."""
    end = time.monotonic() + seconds
    dice, report = random.Random(seed), Report()
    gauges, callers = Gauges(server.http), _Callers(server, dice)
    with revolute.connect(server.grpc) as simulator:
        works = list(_works(simulator))
        over_http = [work for work in works if work.body]
        before = gauges.read()
        for number in range(0, count, TOGETHER):
            if time.monotonic() > end:
                break
            way = WAYS[number // TOGETHER % len(WAYS)]
            chosen = dice.choices(over_http if way == "disconnect" else works, k=TOGETHER)
            calls = [(work.rpc, callers.start(way, work)) for work in chosen]
            for _, call in calls:
                time.sleep(dice.uniform(0, LATEST) / TOGETHER)
                call.give_up()
            report.idle_ms.setdefault(way, []).append(1e3 * gauges.wait_idle(PATIENCE))
            for rpc, call in calls:
                ended = report.answered if call.was_answered() else report.given_up
                ended[rpc] = ended.get(rpc, 0) + 1
        after = gauges.read()
        for name in ("sessions", "trajectories", "memory_bytes", "queue_length", "workers_busy"):
            report.left[name] = after[name] - before[name]
        # the server is as usable as before
        model = simulator.load_model("laikago")
        assert simulator.rollout(model, START, np.zeros(model.nv), np.tile(POSE, (5, 1))).status == 0
    callers.close()
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
    times = report.times()
    by_way = ", ".join(f"{way} {times[way]['99 %']:.1f}" for way in report.idle_ms)
    left = {name: n for name, n in report.left.items() if n}
    summary = (
        f"{sum(report.given_up.values())} calls given up at random moments "
        f"({sum(report.answered.values())} were faster): "
        f"engine idle after {times['all']['median']:.1f} ms (median), {times['all']['99 %']:.1f} ms (99 %: "
        f"{by_way}), {times['all']['longest']:.1f} ms (longest); {len(left)} kinds of slots leaked"
    )
    found = {
        "given_up": report.given_up,
        "answered": report.answered,
        "idle_ms": times,
        "left": report.left,
    }
    return verdict.finish(chosen.out, summary, found, [f"{n:g} {name} left" for name, n in left.items()])


if __name__ == "__main__":
    sys.exit(main())
