"""`RolloutPool`: a simulator whose batches are computed by many workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray

from ..connection import connect
from ..contract.errors import ArgumentError
from ..contract.scalars import whole_number
from ..model import check_model
from ..simulator import Simulator
from .transport import PoolTransport
from .workers import Workers


class RolloutPool(Simulator):
    """The API of `revolute.connect`, with workers on Ray that share the work of large batches.

    `rollout`, `value_and_gradient`, `jacobian` and `Trajectory.backward` divide their batch. Gradients by
    shared inputs are summed in a fixed order, so bits depend neither on the number of workers nor on their
    speed. Small batches, sessions, checks, measurements and streams are computed in this process, or on the
    server. A worker that dies is replaced, and its work is repeated: no sample is lost or counted twice.

    Args:
        workers: number of workers.
        address: server that the workers connect to, as for `revolute.connect`; None for an engine in each.
        threads: threads of each worker's engine, and processor cores that it reserves.
        patience: seconds after which a worker that does not answer is replaced; None for no bound.
        resources: further options of Ray actors, e.g. {"resources": {"simulation": 1}}.
        **options: further arguments of `revolute.connect`, such as `token`.

    Raises:
        ArgumentError: an argument is wrong.
        UnavailableError: the cluster does not start the workers, or no server answers.
    """

    def __init__(
        self,
        workers: int = 2,
        address: str | None = None,
        *,
        threads: int = 1,
        patience: float | None = None,
        resources: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        count = whole_number("workers", workers, least=1)
        threads = whole_number("threads", threads, least=1)
        if patience is not None and not patience > 0:
            raise ArgumentError.expected("patience", "a positive number of seconds, or None", repr(patience))
        home = connect(address, **options)
        self._started_ray = not ray.is_initialized()
        if self._started_ray:
            ray.init(include_dashboard=False)
        engine = dict(options) if address is not None else {"threads": threads, **options}
        try:
            self._workers = Workers(
                count, address, engine, threads=threads, patience=patience, resources=resources or {}
            )
        except BaseException:
            home.close()
            self._stop_ray()
            raise
        super().__init__(PoolTransport(home.transport, self._workers))

    @property
    def replaced(self) -> int:
        """Number of workers that were replaced so far."""
        return self._workers.replaced

    def worker_processes(self) -> list[int]:
        """Return the process number of each worker."""
        return self._workers.processes()

    def __enter__(self) -> RolloutPool:
        return self

    def close(self) -> None:
        """End the workers; stop Ray if this pool has started it."""
        super().close()
        self._stop_ray()

    def _stop_ray(self) -> None:
        if self._started_ray:
            self._started_ray = False
            ray.shutdown()

    def _id(self, model: Any) -> str:
        known = check_model(model)
        if known.id not in self._loaded:
            self._register(known.source)
        return known.id
