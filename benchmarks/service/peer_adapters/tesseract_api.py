"""The engine as a Tesseract: apply is a rollout, the vector-Jacobian product its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import BaseModel
from tesseract_core.runtime import Array, Differentiable, Float64

from benchmarks.service.peer_adapters import engine


class InputSchema(BaseModel):
    name: str
    ctrl: Differentiable[Array[(None, None), Float64]]


class OutputSchema(BaseModel):
    qpos: Differentiable[Array[(None, None), Float64]]


def apply(inputs: InputSchema) -> OutputSchema:
    return OutputSchema(qpos=engine.rollout(inputs.name, inputs.ctrl))


def vector_jacobian_product(
    inputs: InputSchema, vjp_inputs: set[str], vjp_outputs: set[str], cotangent_vector: dict[str, Any]
) -> dict[str, np.ndarray]:
    # a Tesseract keeps nothing between calls: the rollout is computed again
    chosen, bar = engine.model(inputs.name), np.asarray(cotangent_vector["qpos"])
    trajectory = engine.simulator().rollout(chosen, chosen.qpos0, chosen.qvel0, inputs.ctrl)
    return {"ctrl": trajectory.backward(bar, wrt=["ctrl"]).ctrl}


def abstract_eval(abstract_inputs: Any) -> dict[str, Any]:
    steps, name = abstract_inputs.ctrl.shape[0], abstract_inputs.name
    return {"qpos": {"shape": (steps + 1, engine.model(name).nq), "dtype": "float64"}}
