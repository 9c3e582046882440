"""The workers of a pool: how work is assigned, and what happens when a worker dies or does not answer."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError

from ..contract.errors import UnavailableError
from .worker import Worker

_IN_FLIGHT = 2
"""Calls that a run has at a worker: one runs, the next one waits, so that the worker does not idle."""

_MOST_ATTEMPTS = 5
"""Workers that a job may lose before its call fails."""

_START_SECONDS = 120.0


@dataclass(frozen=True)
class Place:
    """A worker: its number, and how often the worker with this number was replaced."""

    number: int
    generation: int


@dataclass(frozen=True)
class Job:
    """A call of a method of `Worker`.

    Attributes:
        method: the method's name.
        arguments: its arguments; large ones are references to Ray's object store.
        place: the worker that has what the job needs; None if all have. If it is gone, another one is taken.
    """

    method: str
    arguments: tuple[Any, ...]
    place: Place | None = None


class Workers:
    """A fixed number of workers; those that die are replaced.

    Args:
        count: number of workers.
        address: what the workers connect to; see `revolute.connect`.
        options: further arguments of `revolute.connect`.
        threads: processor cores that each worker reserves.
        patience: seconds after which a worker that does not answer is replaced; None for no bound.
        resources: further options of the actors, such as resources={"gpu_node": 1}.

    Raises:
        UnavailableError: the cluster does not start the workers.
    """

    def __init__(
        self,
        count: int,
        address: str | None,
        options: Mapping[str, Any],
        *,
        threads: int,
        patience: float | None,
        resources: Mapping[str, Any],
    ) -> None:
        self._make = lambda: (
            ray.remote(Worker)
            .options(num_cpus=threads, max_restarts=0, **resources)
            .remote(address, dict(options))
        )
        self._patience = patience
        self._lock = threading.Lock()
        self._generations = [0] * count
        self._actors: list[Any] = [self._make() for _ in range(count)]
        try:
            ray.get([actor.process.remote() for actor in self._actors], timeout=_START_SECONDS)
        except GetTimeoutError:
            self.close()
            cores = ray.cluster_resources().get("CPU", 0)
            raise UnavailableError(
                f"workers: expected {count} workers with {threads} processor cores each within "
                f"{_START_SECONDS:.0f} s, got no answer; the cluster has {cores:g} cores",
                argument="workers",
            ) from None
        except RayActorError as error:
            self.close()
            raise UnavailableError(
                f"workers: expected workers that start, got {error}", argument="workers"
            ) from None

    @property
    def replaced(self) -> int:
        """Number of workers that were replaced so far."""
        return sum(self._generations)

    def processes(self) -> list[int]:
        """Return the process number of each worker."""
        return ray.get([actor.process.remote() for actor in self._actors])

    def run(self, jobs: Sequence[Job]) -> list[tuple[Any, Place]]:
        """Carry out all jobs; the results are in the order of the jobs.

        A job is given to another worker if its worker dies or does not answer. Each job has one result, that
        of the worker that finished it.

        Returns:
            For each job the result, and the worker that computed it.

        Raises:
            UnavailableError: the workers of a job died repeatedly.
        """
        return _Run(self, jobs, self._patience).finish()

    def place(self, number: int) -> Place:
        """Return the present worker of a number."""
        return Place(number, self._generations[number])

    def is_current(self, place: Place) -> bool:
        """Tell whether a worker is still the one at its place, not a replacement."""
        return self._generations[place.number] == place.generation

    def __len__(self) -> int:
        return len(self._actors)

    def submit(self, number: int, jobs: Sequence[Job]) -> tuple[ray.ObjectRef, Place]:
        """Send jobs to a worker, in one call."""
        with self._lock:
            place, actor = self.place(number), self._actors[number]
        return actor.run.remote([(job.method, job.arguments) for job in jobs]), place

    def replace(self, place: Place) -> None:
        """Replace a worker, unless another thread has done so."""
        with self._lock:
            if self._generations[place.number] != place.generation:
                return
            _kill(self._actors[place.number])
            self._actors[place.number] = self._make()
            self._generations[place.number] += 1

    def forget(self, keys: Mapping[int, Sequence[str]]) -> None:
        """Let workers delete trajectories, by the worker's number, without waiting for them."""
        for number, names in keys.items():
            self._actors[number].forget.remote(list(names))

    def close(self) -> None:
        """End all workers."""
        for actor in self._actors:
            _kill(actor)


def _kill(actor: Any) -> None:
    with contextlib.suppress(Exception):
        ray.kill(actor)


class _Run:
    """One call of `Workers.run`."""

    def __init__(self, workers: Workers, jobs: Sequence[Job], patience: float | None) -> None:
        self._workers = workers
        self._jobs = jobs
        self._patience = patience
        self._waiting = list(range(len(jobs)))
        self._results: list[tuple[Any, Place] | None] = [None] * len(jobs)
        self._attempts: Counter[int] = Counter()
        self._in_flight: dict[ray.ObjectRef, tuple[list[int], Place]] = {}
        self._last_answer = [time.monotonic()] * len(workers)

    def finish(self) -> list[tuple[Any, Place]]:
        self._hand_out()
        while self._in_flight:
            ready, _ = ray.wait(list(self._in_flight), num_returns=1, timeout=self._wait_seconds())
            for reference in ready:
                self._take(reference)
            self._replace_silent()
            self._hand_out()
        return [result for result in self._results if result is not None]

    def _hand_out(self) -> None:
        """Give waiting jobs to workers that have room."""
        load = Counter(place.number for _, place in self._in_flight.values())
        while self._waiting:
            # the worker with the fewest calls first
            for number in sorted(range(len(self._workers)), key=lambda worker: load[worker]):
                bundle = self._bundle(number) if load[number] < _IN_FLIGHT else []
                if bundle:
                    break
            else:
                return
            if not load[number]:
                self._last_answer[number] = time.monotonic()
            load[number] += 1
            reference, taken = self._workers.submit(number, [self._jobs[index] for index in bundle])
            self._in_flight[reference] = bundle, taken

    def _bundle(self, number: int) -> list[int]:
        """Take waiting jobs for a worker: those that need it, or a share of those that need no special one.

        A call of Ray takes some 3 ms of processor time in all, so a call has several jobs: many at first,
        and one in the end, when workers must not wait for each other. With `patience`, each job is a call.
        """
        mine, free = [], []
        for index in self._waiting:
            place = self._jobs[index].place
            if place is None or not self._workers.is_current(place):
                free.append(index)
            elif place.number == number:
                mine.append(index)
        found = mine or free
        sharers = 1 if mine else len(self._workers)
        size = 1 if self._patience is not None else -(-len(found) // (_IN_FLIGHT * sharers))
        taken = found[:size]
        self._waiting = [index for index in self._waiting if index not in taken]
        return taken

    def _take(self, reference: ray.ObjectRef) -> None:
        """Take results; if their worker has died, or they were lost with its node, repeat the jobs."""
        bundle, place = self._in_flight.pop(reference)
        try:
            results = ray.get(reference)
        except (RayActorError, ObjectLostError) as error:
            self._workers.replace(place)
            self._attempts.update(bundle)
            if max(self._attempts[index] for index in bundle) >= _MOST_ATTEMPTS:
                raise UnavailableError(
                    f"workers: expected a worker that survives a call, got {_MOST_ATTEMPTS} that died; "
                    f"the last one: {error}"
                ) from None
            self._waiting = [*bundle, *self._waiting]
            return
        self._last_answer[place.number] = time.monotonic()
        for index, result in zip(bundle, results, strict=True):
            self._results[index] = result, place

    def _wait_seconds(self) -> float | None:
        if self._patience is None:
            return None
        oldest = min(self._last_answer[place.number] for _, place in self._in_flight.values())
        return max(0.0, oldest + self._patience - time.monotonic())

    def _replace_silent(self) -> None:
        """Replace workers that have not answered for too long; their jobs fail, and are repeated."""
        if self._patience is None:
            return
        now = time.monotonic()
        for place in {place for _, place in self._in_flight.values()}:
            if now - self._last_answer[place.number] > self._patience:
                self._workers.replace(place)
                self._last_answer[place.number] = now
