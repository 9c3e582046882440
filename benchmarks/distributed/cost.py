"""What a gradient costs besides its physics: bytes on the wire and processor time, and where that ends.

    python -m benchmarks.distributed.cost [--repeats 9] [--quick] [--out cost.json]

Bytes of gRPC are counted by a relay between client and server, those of Ray are what it serializes.
benchmarks/results/distributed.md divides what machines can do by these costs: how many workers each part of
a system can serve.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray

import revolute
from revolute.ray import RolloutPool
from revolute.ray.workers import Job, Workers
from testbed.server_process import running_server

from ..script import Effort, script
from ..service.closed_loops import ANTS, CONTROLS, HOLD, ant_calls
from ..table import Row, Table
from .scale import BATCH, STEPS, calls_of, processor_ms

COLUMNS = {
    "gradient": "gradient",
    "way": "way",
    "sent": "kB sent",
    "received": "kB received",
    "engine_ms": "engine in process, ms",
    "server_ms": "server or worker, ms",
    "client_ms": "client, ms",
}
SHARDS = 16
"""Shards of the calls below: a pool divides them, and a shard is about one call of a remote worker."""
LAIKAGOS = BATCH // SHARDS

Calls = dict[str, Callable[[], object]]


class Relay:
    """Passes connections on to a server, and counts their bytes.

    Attributes:
        sent: bytes to the server.
        received: bytes from it.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self.sent = self.received = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"grpc://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for source, sink, name in ((near, far, "sent"), (far, near, "received")):
                    threading.Thread(target=self._copy, args=(source, sink, name), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket, name: str) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 20):
                setattr(self, name, getattr(self, name) + len(content))
                sink.sendall(content)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()


def calls(simulator: revolute.Simulator, shards: int) -> Calls:
    """Return calls by name, of as many gradients as shards."""
    return {
        f"policy, {ANTS} ants, {CONTROLS} × {HOLD} steps": ant_calls(simulator, ants=shards * ANTS)[0],
        f"controls, {LAIKAGOS} Laikagos, {STEPS} steps": calls_of(
            simulator, Effort(), batch=shards * LAIKAGOS
        )["value_and_gradient"],
    }


def over_grpc(repeats: int, engine: dict[str, float]) -> Iterator[Row]:
    """Measure one gradient per call, over a server's connection."""
    with running_server("--threads", "1", "--no-shared-memory") as server:
        relay = Relay(server.grpc_target)
        with revolute.connect(relay.address) as simulator:
            for name, call in calls(simulator, 1).items():
                call()
                relay.sent = relay.received = 0
                client, used = processor_ms(call, repeats, [server.process.pid])
                yield row(
                    name, "gRPC", relay.sent / repeats, relay.received / repeats, engine[name], used, client
                )
        relay.close()


def over_ray(repeats: int, engine: dict[str, float]) -> Iterator[Row]:
    """Measure calls that a pool of one worker divides, by shard."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    with RolloutPool(1) as pool:
        (worker,) = pool.worker_processes()
        for name, call in calls(pool, SHARDS).items():
            with counted_ray() as bytes_of:
                call()
            client, used = processor_ms(call, repeats, [worker])
            sent, received = (bytes_of[way] / SHARDS for way in ("sent", "received"))
            yield row(name, "Ray", sent, received, engine[name], used / SHARDS, client / SHARDS)
    ray.shutdown()


@contextlib.contextmanager
def counted_ray() -> Iterator[dict[str, int]]:
    """Count the bytes that Ray serializes for jobs of this process, and those of their answers."""
    counts, run = {"sent": 0, "received": 0}, Workers.run

    def size(value: Any) -> int:
        context = ray._private.worker.global_worker.get_serialization_context()
        return int(context.serialize(value).total_bytes)

    def counting(self: Workers, jobs: Sequence[Job]) -> Any:
        found = run(self, jobs)
        counts["sent"] += sum(size(argument) for job in jobs for argument in job.arguments)
        counts["received"] += sum(size(answer) for answer, _ in found)
        return found

    Workers.run = counting  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        Workers.run = run  # type: ignore[method-assign]


def row(gradient: str, way: str, sent: float, received: float, *milliseconds: float) -> Row:
    """Return a row of the table."""
    engine, server, client = milliseconds
    return {
        "gradient": gradient,
        "way": way,
        "sent": sent / 1e3,
        "received": received / 1e3,
        "engine_ms": engine,
        "server_ms": server,
        "client_ms": client,
    }


def measure(effort: Effort) -> list[Table]:
    """Return the table of bytes and processor times."""
    table = Table(
        "cost",
        "For each gradient; times are processor times. One thread for each engine.",
        COLUMNS,
    )
    repeats = 1 if effort.quick else 10 * effort.repeats
    engine = {}
    with revolute.connect(threads=1) as local:
        for name, call in calls(local, 1).items():
            call()
            engine[name], _ = processor_ms(call, repeats)
    table.rows += over_grpc(repeats, engine)
    table.rows += over_ray(max(1, repeats // SHARDS), engine)
    return [table]


if __name__ == "__main__":
    script("benchmarks.distributed.cost", __doc__, measure)
