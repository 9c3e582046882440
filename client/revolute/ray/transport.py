"""The pool as a transport: batches are divided among workers, everything else goes to the home simulator."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import ray

from ..contract.controllers import STEP_INPUTS
from ..contract.errors import DivergedError, RevoluteError
from ..contract.transport import Transport
from .shards import (
    Document,
    Inputs,
    joined,
    joined_gradients,
    part_of_bars,
    part_of_loss,
    shard_slices,
)
from .workers import Job, Place, Workers

ADDRESS = "ray"


@dataclass(frozen=True)
class _Model:
    """A registered model: its message RegisterModel in the object store, and the axes of its parameters."""

    source: Sequence[ray.ObjectRef]
    axes: Mapping[str, int]


@dataclass
class _Divided:
    """A trajectory in shards.

    Attributes:
        model: the model.
        inputs: the inputs of the whole trajectory.
        document: their message.
        slices: the environments of each shard.
        keys: the pool's name of each shard's trajectory.
        sources: the message RolloutInputs of each shard, in the object store.
        places: the worker that has it.
        at_home: id of the same trajectory in the home simulator; empty if it is not there.
    """

    model: _Model
    inputs: Inputs
    document: Document
    slices: list[slice]
    keys: list[str]
    sources: list[ray.ObjectRef]
    places: list[Place] = field(default_factory=list)
    at_home: str = ""


class PoolTransport:
    """Divides batches among workers.

    Args:
        home: answers the calls that are not divided: small batches, sessions, lists.
        workers: the workers.
    """

    address = ADDRESS

    def __init__(self, home: Transport, workers: Workers) -> None:
        self._home = home
        self._workers = workers
        self._models: dict[str, _Model] = {}
        self._trajectories: dict[str, _Divided] = {}
        self._numbers = itertools.count()
        self._verbs: dict[str, Callable[[Document], Any]] = {
            "RegisterModel": self._register,
            "Rollout": self._rollout,
            "GetTrajectory": self._get_trajectory,
            "DeleteTrajectory": self._delete_trajectory,
            "Backward": self._backward,
            "Jvp": partial(self._at_home, "Jvp"),
            "Measure": partial(self._at_home, "Measure"),
            "FindContacts": partial(self._at_home, "FindContacts"),
            "ValueAndGradient": self._value_and_gradient,
            "Jacobian": self._jacobian,
        }

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> Document:
        """Carry out one verb; see `Transport.call`."""
        divided = self._verbs.get(verb)
        answer = divided(dict(document)) if divided else None
        return self._home.call(verb, document, timeout=timeout) if answer is None else answer

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[Document]:
        """Carry out StreamRollout, undivided; see `Transport.stream`."""
        return self._home.stream(verb, document)

    def custom_loss(
        self, document: Mapping[str, Any], respond: Callable[[Document], Mapping[str, Any]]
    ) -> Document:
        """Differentiate a Python loss function; see `Transport.custom_loss`."""
        trajectory = self._rollout({**document["inputs"], "states": "all"})
        if trajectory is None:
            return self._home.custom_loss(document, respond)
        try:
            named = {"trajectory_id": trajectory["trajectory_id"]}
            method = {name: value for name, value in document.items() if name != "inputs"}
            gradient = self._backward({**method, **named, **respond(trajectory)})
            assert gradient is not None
            names = ("diverged_step", "unsettled_step", "residual")
            solved = {name: trajectory[name] for name in names if name in trajectory}
            return {"gradient": gradient, "report": gradient["report"], **solved}
        finally:
            self._delete_trajectory({"trajectory_id": trajectory["trajectory_id"]})

    def close(self) -> None:
        """End the workers, and close the home simulator."""
        self._workers.close()
        self._home.close()

    # Each verb below returns None for a call that is not divided among workers.

    def _register(self, document: Document) -> Document:
        answer = self._home.call("RegisterModel", document)
        axes = {name: np.ndim(value) for name, value in answer["params"].items()}
        if answer["model_id"] not in self._models:
            self._models[answer["model_id"]] = _Model([ray.put(document)], axes)
        return answer

    def _divided(self, document: Document, ctrl_axes: int = 2) -> tuple[_Model, Inputs, list[slice]] | None:
        """Divide a call's inputs; None if it has one shard only, or a model of another simulator."""
        model = self._models.get(document["model_id"])
        if model is None:
            return None
        inputs = Inputs(document, model.axes, ctrl_axes)
        if inputs.batch is None:
            return None
        slices = shard_slices(inputs.batch, inputs.steps)
        return (model, inputs, slices) if len(slices) > 1 else None

    def _rollout(self, document: Document) -> Document | None:
        self._forget_pools(document)
        found = self._divided(document)
        if found is None:
            return None
        model, inputs, slices = found
        keys = [f"{next(self._numbers)}" for _ in slices]
        sources = [ray.put(inputs.part(rows)) for rows in slices]
        jobs = [
            Job("rollout", (key, model.source, [source])) for key, source in zip(keys, sources, strict=True)
        ]
        kept = _Divided(model, inputs, document, slices, keys, sources)
        answer = joined(self._finish(jobs, kept))
        if answer["trajectory_id"]:
            answer["trajectory_id"] = f"pool-{next(self._numbers)}"
            self._trajectories[answer["trajectory_id"]] = kept
        return answer

    def _get_trajectory(self, document: Document) -> Document | None:
        kept = self._trajectories.get(document["trajectory_id"])
        if kept is None:
            return None
        answers = self._finish(self._jobs_on(kept, "GetTrajectory", [document] * len(kept.slices)), kept)
        params = kept.document.get("params") or {}
        inputs = {name: kept.document[name] for name in STEP_INPUTS if kept.document.get(name) is not None}
        found = {"trajectory_id": document["trajectory_id"], "params": params, "inputs": inputs}
        return {**joined(answers), **found}

    def _delete_trajectory(self, document: Document) -> Document | None:
        kept = self._trajectories.pop(document["trajectory_id"], None)
        if kept is None:
            return None
        if kept.at_home:
            self._home.call("DeleteTrajectory", {"trajectory_id": kept.at_home})
        by_worker: defaultdict[int, list[str]] = defaultdict(list)
        for key, place in zip(kept.keys, kept.places, strict=True):
            by_worker[place.number].append(key)
        self._workers.forget(by_worker)
        return {}

    def _backward(self, document: Document) -> Document | None:
        kept = self._trajectories.get(document["trajectory_id"])
        if kept is None:
            return None
        named = (document.get(name) for name in ("qpos_bar", "qvel_bar", "ctrl_bar"))
        stacked = max((np.ndim(bar) for bar in named if bar is not None), default=3) == 4
        parts = [part_of_bars(document, rows) for rows in kept.slices]
        gradients = self._finish(self._jobs_on(kept, "Backward", parts), kept, surviving=True)
        return joined_gradients(gradients, kept.inputs, stacked=stacked)

    def _value_and_gradient(self, document: Document) -> Document | None:
        found = self._divided(document["inputs"])
        if found is None:
            return None
        model, inputs, slices = found
        assert inputs.batch is not None
        batch = inputs.batch
        jobs = [
            Job(
                "call",
                (
                    "ValueAndGradient",
                    {
                        **document,
                        "inputs": inputs.part(rows),
                        "loss": part_of_loss(document["loss"], batch, rows),
                    },
                    model.source,
                ),
            )
            for rows in slices
        ]
        answers = self._finish(jobs, surviving=True)
        gradients = [answer.pop("gradient") for answer in answers]
        whole = joined(answers)
        if document.get("on_diverged") != "inf":
            whole["value"] = np.where(whole["diverged_step"] >= 0, np.nan, whole["value"])
        return {**whole, "gradient": joined_gradients(gradients, inputs)}

    def _jacobian(self, document: Document) -> Document | None:
        found = self._divided(document, ctrl_axes=1)
        if found is None:
            return None
        model, inputs, slices = found
        jobs = [Job("call", ("Jacobian", inputs.part(rows), model.source)) for rows in slices]
        answers = self._finish(jobs)
        return joined(answers)

    def _at_home(self, verb: str, document: Document) -> Document | None:
        """Simulate a divided trajectory at home as well, where all other verbs on it are carried out."""
        inside = document.get("states")
        place = inside if isinstance(inside, dict) else document
        kept = self._trajectories.get(place.get("trajectory_id") or "")
        if kept is None:
            return None
        if not kept.at_home:
            kept.at_home = self._home.call("Rollout", {**kept.document, "states": "final"})["trajectory_id"]
        named = {**place, "trajectory_id": kept.at_home}
        return self._home.call(verb, {**document, "states": named} if place is inside else named)

    def _jobs_on(self, kept: _Divided, verb: str, parts: Sequence[Document]) -> list[Job]:
        """Return jobs on each shard of a trajectory, at the workers that have them."""
        return [
            Job("on_trajectory", (verb, key, part, kept.model.source, [source]), place)
            for key, part, source, place in zip(kept.keys, parts, kept.sources, kept.places, strict=True)
        ]

    def _finish(
        self, jobs: Sequence[Job], kept: _Divided | None = None, *, surviving: bool = False
    ) -> list[Any]:
        """Carry out jobs, and return their answers.

        Args:
            jobs: the jobs.
            kept: the trajectory that they are on, which is told where its shards are now.
            surviving: whether the call continues if every environment of some shard diverged; it has
                `on_diverged`.

        Raises:
            RevoluteError: that of the first shard that failed.
            DivergedError: every environment diverged.
        """
        results = self._workers.run(jobs)
        if kept is not None:
            kept.places = [place for _, place in results]
        answers = [answer for answer, _ in results]
        lost = [index for index, answer in enumerate(answers) if isinstance(answer, DivergedError)]
        failed = [answer for answer in answers if isinstance(answer, RevoluteError)]
        if failed and not (surviving and len(failed) == len(lost) < len(jobs)):
            raise next((error for error in failed if not isinstance(error, DivergedError)), failed[0])
        if lost:
            again = self._workers.run([_surviving(jobs[index]) for index in lost])
            for index, (answer, _) in zip(lost, again, strict=True):
                answers[index] = answer
        return answers

    def _forget_pools(self, document: Document) -> None:
        """Delete the trajectories of the pool that a rollout's client has let go of."""
        names = document.pop("forget", None) or []
        for name in names:
            if self._delete_trajectory({"trajectory_id": name}) is None:
                document.setdefault("forget", []).append(name)


def _surviving(job: Job) -> Job:
    """Return the job of a shard whose environments all diverged, which answers NaN."""
    changed = tuple(
        {**argument, "on_diverged": "inf"} if isinstance(argument, dict) else argument
        for argument in job.arguments
    )
    return Job(job.method, changed, job.place)
