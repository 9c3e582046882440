"""One tool, one program, one length, in a process of its own.

`python -m benchmarks.autodiff.one TOOL PROGRAM STEPS GIGABYTES OUT` writes processor times, the peak
of memory above that before the run, and the gradient to OUT (npz).
"""

from __future__ import annotations

import os
import resource
import sys
from time import process_time
from typing import Any

import numpy as np

from ..memory import with_peak
from . import simplified
from .build import module

SCRIPTS = {
    "jax_eager": simplified.jax_eager,
    "jax_scan": simplified.jax_scan,
    "torch": simplified.torch_scalars,
}
WARM_STEPS = 2  # run first, so that imports and one-time set-up are not counted


def run(tool: str, program: str, steps: int) -> dict[str, Any]:
    """Return times, memory and gradient of one run."""
    if tool in SCRIPTS:
        SCRIPTS[tool](WARM_STEPS)
        result, peak = with_peak(lambda: SCRIPTS[tool](steps))
        return {**result, "memory_mb": peak}
    if program == "simplified":
        library = module(tool)
        result, peak = with_peak(lambda: library.simplified(simplified.start(), steps))
        return {**result, "memory_mb": peak}
    return run_robot(tool, steps)


def run_robot(tool: str, steps: int) -> dict[str, Any]:
    """Differentiate |final base position|^2 of the standing Laikago by start and controls."""
    from ..laikago import START, Scene, controls

    scene = Scene(steps)
    if tool == "revolute":
        result, peak = with_peak(lambda: revolute_gradient(scene))
    else:
        library, ctrl = module(tool), controls(steps).ravel()
        state = np.concatenate([START, np.zeros(scene.model.nv)])
        result, peak = with_peak(lambda: library.robot(scene.model.arrays, state, ctrl))
    return {**result, "memory_mb": peak}


def revolute_gradient(scene: Any) -> dict[str, Any]:
    """Return what the engine's adjoint gives, in the order of the others."""
    from ..laikago import controls

    ctrl = controls(scene.steps)[None]
    begin = process_time()
    rollout = scene.engine.rollout(scene.model, scene.start, np.zeros(scene.model.nv), ctrl)
    middle = process_time()
    gradient = scene.gradient(rollout)
    end = process_time()
    return {
        "forward_seconds": middle - begin,
        "backward_seconds": end - middle,
        "gradient": np.concatenate([gradient.qpos[0], gradient.qvel[0], gradient.ctrl[0].ravel()]),
    }


def main() -> None:
    """Run with bounded memory, and leave without tearing tapes down."""
    tool, program, steps, gigabytes, out = sys.argv[1:]
    bytes_allowed = int(float(gigabytes) * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (bytes_allowed, bytes_allowed))
    result = run(tool, program, int(steps))
    np.savez(out, **result)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
