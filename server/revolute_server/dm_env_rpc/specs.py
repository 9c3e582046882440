"""Specifications of the actions and observations of a world."""

from __future__ import annotations

from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb

from revolute_engine import Model

from .task import WorldTask

CTRL = 1
"""Uid of the only action."""

QPOS, QVEL, REWARD, DISCOUNT = 1, 2, 3, 4
"""Uids of the observations."""


def specs_of(model: Model, task: WorldTask) -> pb.ActionObservationSpecs:
    """Describe the actions and observations of a model.

    The discount is an observation only if the task sets one. Without it, dm_env's adaptor derives 1 or 0 from
    the state of the episode, and gives the first step no discount, as dm_env requires.
    """
    specs = pb.ActionObservationSpecs()
    if model.nu:
        specs.actions[CTRL].CopyFrom(_array("ctrl", model.nu))
        low, high = task.task.action_range(model).T
        specs.actions[CTRL].min.doubles.array.extend(low)
        specs.actions[CTRL].max.doubles.array.extend(high)
    for uid, name, size in ((QPOS, "qpos", model.nq), (QVEL, "qvel", model.nqvel)):
        if name in task.task.observed:
            specs.observations[uid].CopyFrom(_array(name, size))
    specs.observations[REWARD].CopyFrom(_array("reward"))
    if task.discount is not None:
        specs.observations[DISCOUNT].CopyFrom(_array("discount"))
        specs.observations[DISCOUNT].min.doubles.array.append(0.0)
        specs.observations[DISCOUNT].max.doubles.array.append(1.0)
    return specs


def _array(name: str, *shape: int) -> pb.TensorSpec:
    return pb.TensorSpec(name=name, shape=shape, dtype=pb.DataType.DOUBLE)
