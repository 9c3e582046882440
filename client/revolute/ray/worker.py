"""A worker: an engine, or a connection to a server, in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import ray

from ..connection import connect
from ..contract.errors import NotFoundError, RevoluteError

Document = dict[str, Any]


class Worker:
    """Carries out verbs for the pool. It keeps nothing that could not be computed again.

    Args:
        address: as for `revolute.connect`.
        options: further arguments of `revolute.connect`.
    """

    def __init__(self, address: str | None, options: Mapping[str, Any]) -> None:
        self._transport = connect(address, **options).transport
        self._models: set[str] = set()
        self._trajectories: dict[str, str] = {}

    def process(self) -> int:
        """Return the number of this process, as soon as the worker is ready."""
        return os.getpid()

    def run(self, jobs: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Any]:
        """Call methods, given by name and arguments, one after the other."""
        return [getattr(self, method)(*arguments) for method, arguments in jobs]

    def call(self, verb: str, document: Document, model: Sequence[ray.ObjectRef]) -> Any:
        """Carry out a verb, and return its answer or its error.

        Args:
            verb: name of the verb.
            document: the request.
            model: the message RegisterModel of the model, which is read if the worker does not know it.
        """
        try:
            return self._on_model(verb, document, model)
        except RevoluteError as error:
            return error

    def rollout(self, key: str, model: Sequence[ray.ObjectRef], inputs: Sequence[ray.ObjectRef]) -> Any:
        """Simulate, and keep the trajectory under a name of the pool; return as `call` does.

        Args:
            key: the pool's name of the trajectory.
            model: as for `call`.
            inputs: the message RolloutInputs, which is read once and kept for repeats.
        """
        try:
            return self._simulate(key, ray.get(inputs[0]), model)
        except RevoluteError as error:
            return error

    def on_trajectory(
        self,
        verb: str,
        key: str,
        document: Document,
        model: Sequence[ray.ObjectRef],
        inputs: Sequence[ray.ObjectRef],
    ) -> Any:
        """Carry out a verb on a trajectory, which is simulated again if this worker no longer has it.

        Args:
            verb: name of the verb.
            key: the pool's name of the trajectory.
            document: the request without the trajectory's id.
            model: as for `call`.
            inputs: the message RolloutInputs of the trajectory.
        """
        try:
            if key not in self._trajectories:
                self._repeat(key, model, inputs)
            try:
                return self._ask(verb, key, document)
            except NotFoundError:
                self._repeat(key, model, inputs)
                return self._ask(verb, key, document)
        except RevoluteError as error:
            return error

    def forget(self, keys: Sequence[str]) -> None:
        """Delete trajectories."""
        for key in keys:
            known = self._trajectories.pop(key, None)
            if known is not None:
                try:
                    self._transport.call("DeleteTrajectory", {"trajectory_id": known})
                except RevoluteError:
                    # the server that kept it has ended, or will delete it when it expires
                    continue

    def _ask(self, verb: str, key: str, document: Document) -> Document:
        return self._transport.call(verb, {**document, "trajectory_id": self._trajectories[key]})

    def _repeat(self, key: str, model: Sequence[ray.ObjectRef], inputs: Sequence[ray.ObjectRef]) -> None:
        """Simulate a trajectory again for a verb on it; without returning its states."""
        self._simulate(key, {**ray.get(inputs[0]), "states": "final"}, model)

    def _simulate(self, key: str, document: Document, model: Sequence[ray.ObjectRef]) -> Document:
        answer = self._on_model("Rollout", document, model)
        if answer["trajectory_id"]:
            self._trajectories[key] = answer["trajectory_id"]
        if not (document.get("feedback") or document.get("policy")):
            # the caller has the controls
            answer.pop("ctrl", None)
        for name in ("params", "inputs"):
            answer.pop(name, None)
        return answer

    def _on_model(self, verb: str, document: Document, model: Sequence[ray.ObjectRef]) -> Document:
        model_id = document.get("model_id") or document["inputs"]["model_id"]
        if model_id not in self._models:
            self._register(model_id, model)
        try:
            return self._transport.call(verb, document)
        except NotFoundError:
            # its server has lost the model
            self._register(model_id, model)
            return self._transport.call(verb, document)

    def _register(self, model_id: str, model: Sequence[ray.ObjectRef]) -> None:
        self._transport.call("RegisterModel", ray.get(model[0]))
        self._models.add(model_id)
