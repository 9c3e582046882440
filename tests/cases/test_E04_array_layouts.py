"""Case E04: arrays of any layout and byte order give the same bits; shapes are never guessed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revolute

FOLDER = Path(__file__).parent / "E04"
CART = (FOLDER / "cart.xml").read_text()
EXPECTED = json.loads((FOLDER / "expected.json").read_text())

CTRL = 10.0 * np.arange(3)[:, None, None] + np.arange(4)[None, :, None]
"""Controls of the case: a[i, k] = 10 i + k, shape [3, 4, 1]."""

RELATIVE_TOLERANCE = 1e-14  # four additions


def _mapped(folder: Path) -> np.ndarray:
    np.save(folder / "ctrl.npy", CTRL)
    return np.load(folder / "ctrl.npy", mmap_mode="r")


def _read_only(folder: Path) -> np.ndarray:
    array = CTRL.copy()
    array.flags.writeable = False
    return array


def _torch(folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    wide = torch.zeros((4, 3, 2), dtype=torch.float64)
    wide[:, :, 0] = torch.from_numpy(CTRL[:, :, 0].T.copy())
    return wide.requires_grad_().transpose(0, 1)[:, :, :1]


def _jax(folder: Path) -> Any:
    return pytest.importorskip("jax").numpy.asarray(CTRL)


LAYOUTS: dict[str, Callable[[Path], Any]] = {
    "C order": lambda folder: CTRL,
    "Fortran order": lambda folder: np.asfortranarray(CTRL),
    "every second row": lambda folder: np.repeat(CTRL, 2, axis=0)[::2],
    "reversed view": lambda folder: CTRL[::-1, ::-1].copy()[::-1, ::-1],
    "transposed view": lambda folder: CTRL.transpose(1, 0, 2).copy().transpose(1, 0, 2),
    "big-endian": lambda folder: CTRL.astype(">f8"),
    "float32": lambda folder: CTRL.astype(np.float32),
    "big-endian integers": lambda folder: CTRL.astype(">i4"),
    "read-only": _read_only,
    "memory-mapped": _mapped,
    "lists": lambda folder: CTRL.tolist(),
    "torch, not contiguous, requires grad": _torch,
    "jax": _jax,
}


@pytest.fixture
def model(simulator: revolute.Simulator) -> revolute.ModelHandle:
    return simulator.load_model(CART)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_does_not_matter(
    layout: str, simulator: revolute.Simulator, model: revolute.ModelHandle, tmp_path: Path
) -> None:
    ctrl = LAYOUTS[layout](tmp_path)
    plain = simulator.rollout(model, [0.0], [0.0], CTRL.copy())
    trajectory = simulator.rollout(model, [0.0], [0.0], ctrl)
    np.testing.assert_allclose(trajectory.qvel[:, -1, 0], EXPECTED["v"], rtol=RELATIVE_TOLERANCE)
    assert trajectory.qpos.tobytes() == plain.qpos.tobytes()
    assert trajectory.qvel.tobytes() == plain.qvel.tobytes()
    assert trajectory.ctrl.tobytes() == CTRL.tobytes()


def test_broadcast(simulator: revolute.Simulator, model: revolute.ModelHandle) -> None:
    trajectory = simulator.rollout(model, [0.0], [0.0], np.broadcast_to(2.0, (3, 4, 1)))
    np.testing.assert_allclose(trajectory.qvel[:, -1, 0], EXPECTED["broadcast2"], rtol=RELATIVE_TOLERANCE)


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Fortran order": np.asfortranarray,
    "big-endian": lambda array: array.astype(">f8"),
    "float32": lambda array: array.astype(np.float32),
    "every second row": lambda array: np.repeat(array, 2, axis=0)[::2],
}


@pytest.mark.parametrize("layout", CHANGES)
def test_states_and_cotangents_of_any_layout(
    layout: str, simulator: revolute.Simulator, model: revolute.ModelHandle
) -> None:
    change = CHANGES[layout]
    state, bar = np.array([[0.5], [0.25], [2.0]]), np.arange(15.0).reshape(3, 5, 1)
    plain = simulator.rollout(model, state, state, CTRL)
    changed = simulator.rollout(model, change(state), change(state), CTRL)
    assert changed.qpos.tobytes() == plain.qpos.tobytes()
    expected = plain.backward(bar, bar)
    found = changed.backward(change(bar), change(bar))
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def test_shapes_are_never_guessed(simulator: revolute.Simulator, model: revolute.ModelHandle) -> None:
    # [4, 1] is [time, nu] by rule: one environment, four steps, no batch axis in the results
    assert simulator.rollout(model, [0.0], [0.0], np.ones((4, 1))).qvel.shape == (5, 1)
    # [1, 4] would be one step of four controls, and [4] says neither
    for shape in ((1, 4), (4,)):
        with pytest.raises(revolute.ArgumentError) as caught:
            simulator.rollout(model, [0.0], [0.0], np.ones(shape))
        assert str(caught.value).startswith("ctrl: expected shape [batch, time, nu=1] or [time, nu=1], got ")
        assert str(list(shape)) in str(caught.value)


def test_wrong_length_names_the_expected_shape(
    simulator: revolute.Simulator, model: revolute.ModelHandle
) -> None:
    with pytest.raises(
        revolute.ArgumentError, match=r"^qpos: expected shape \[batch=3, nq=1\] or \[nq=1\], got \[2, 1\]"
    ):
        simulator.rollout(model, np.zeros((2, 1)), [0.0], CTRL)


@pytest.mark.parametrize("dtype", [complex, object, str])
def test_other_types_are_refused_by_name(
    dtype: type, simulator: revolute.Simulator, model: revolute.ModelHandle
) -> None:
    with pytest.raises(revolute.ArgumentError, match=r"^ctrl: expected an array of real numbers, got "):
        simulator.rollout(model, [0.0], [0.0], CTRL.astype(dtype))
