"""The engine's own step on the scalars of autodiff libraries gives the gradient of the hand-written adjoint.

That is a test of the adjoint by methods that know nothing of it: tapes, forward-mode numbers. Libraries that
are not installed are left out; the tree of operations is part of the repository.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.autodiff import build, simplified
from benchmarks.autodiff.one import run, run_robot
from benchmarks.autodiff.tables import gradient_difference

AGREEMENT = 1e-11  # relative; found 3e-15 over 50 steps
STEPS = 20


@pytest.fixture(scope="module")
def built() -> Iterator[list[str]]:
    """Build without optimisation, apart from the modules of the benchmark, what has its headers here."""
    if shutil.which(build.tool("cmake")) is None:
        pytest.skip("cmake: none is installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "FOLDER", build.FOLDER.with_name("autodiff-tests"))
        yield build.build(install=False, optimised=False)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["jet", "adolc", "cppad"])
def test_the_adjoint_gives_the_gradient_of_autodiff(
    library: str, built: list[str], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library not in built:
        pytest.skip(f"{library}: {build.MISSING[library]}")
    monkeypatch.chdir(str(tmp_path))  # ADOL-C writes its tapes there
    found = run_robot(library, STEPS)["gradient"]
    assert gradient_difference("robot", STEPS, found) < AGREEMENT
    # the comparison can fail
    found[0] += 1e-6 * np.abs(found[:19]).max()
    assert gradient_difference("robot", STEPS, found) > AGREEMENT


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["tree", "jet", "adolc", "cppad"])
def test_the_toy_step_is_differentiated_as_by_hand(
    tool: str, built: list[str], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tool not in built:
        pytest.skip(f"{tool}: {build.MISSING[tool]}")
    monkeypatch.chdir(str(tmp_path))
    found = run(tool, "simplified", 3)["gradient"]
    np.testing.assert_allclose(found, simplified.by_hand(3), rtol=1e-12)


@pytest.mark.parametrize("tool", ["jax_scan", "torch"])
def test_the_scripts_differentiate_the_toy_step_as_by_hand(tool: str) -> None:
    pytest.importorskip("torch" if tool == "torch" else "jax")
    found = run(tool, "simplified", 3)["gradient"]
    np.testing.assert_allclose(found, simplified.by_hand(3), rtol=1e-12)


def test_the_reverse_by_hand_agrees_with_differences() -> None:
    def loss(x: np.ndarray) -> float:
        values = list(x)
        for _ in range(4):
            values = simplified.one_step(values)
        return float(sum(values))

    direction = np.random.default_rng(1).normal(size=simplified.SIZE)
    h = 1e-6
    difference = (loss(simplified.start() + h * direction) - loss(simplified.start() - h * direction)) / (
        2 * h
    )
    assert simplified.by_hand(4) @ direction == pytest.approx(difference, rel=1e-7)
