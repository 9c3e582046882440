"""Many random scenes of aligned shapes, each with every contact model and solver.

    python -m benchmarks.gradients.aligned [FIRST] [COUNT]

Of each scene of testbed/aligned_scenes.py: how far backward and forward derivative are apart,
whether the derivative of a step is that of a state beside it, and what `check_gradient` says of three steps.
Prints the scenes where one of these is wrong, and counts.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

from revolute.contract.errors import DivergedError
from revolute_engine import Engine, check_gradient
from testbed.aligned_scenes import Aligned, judge, load, scene

OPTIONS: dict[str, dict[str, Any]] = {
    "mujoco": {},
    "hard": {"contact_model": "hard"},
    "hard, exact": {"contact_model": "hard", "solver": "exact"},
}


def _examine(engine: Engine, drawn: Aligned, seed: int, options: dict[str, Any]) -> tuple[list[str], str]:
    """Return the verdicts, and what is wrong with the derivatives."""
    model = load(drawn, **options)
    if model.nv == 0:
        return [], ""
    qpos = np.array(model.qpos0)
    qvel = drawn.velocity * np.random.default_rng(seed).normal(size=model.nv)
    found = judge(engine, model, qpos, qvel, seed)
    try:
        report = check_gradient(
            engine, model, qpos, qvel, np.zeros((3, model.nu)), directions=2, wrt=["qpos", "qvel"]
        )
    except DivergedError:
        return ["diverges"], ""
    verdicts = [check.verdict for check in report.inputs]
    unsound = [] if found.is_sound else [str(found)]
    return verdicts, "; ".join([*unsound, *(["wrong"] if "wrong" in verdicts else [])])


def main(first: int = 0, count: int = 1000) -> None:
    """Examine scenes first … first + count - 1."""
    warnings.simplefilter("ignore")
    engine, verdicts = Engine(threads=1), {name: Counter[str]() for name in OPTIONS}
    for seed in range(first, first + count):
        drawn = scene(seed)
        for name, options in OPTIONS.items():
            found, unsound = _examine(engine, drawn, seed, options)
            verdicts[name].update(found)
            if unsound:
                print(f"{seed}, {name}: {unsound}: {drawn.what}", flush=True)
    for name, counted in verdicts.items():
        print(f"{name}: {', '.join(f'{number} {verdict}' for verdict, number in counted.most_common())}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
