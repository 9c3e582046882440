"""Losses as data: values by hand, cotangents by central differences, strict reading."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from revolute import ArgumentError, Loss, Term
from revolute.contract.codec.json_text import from_json, to_json
from revolute.contract.measures import MEASURES

RANDOM = np.random.default_rng(7)
QPOS, QVEL, CTRL = RANDOM.normal(size=(2, 5, 3)), RANDOM.normal(size=(2, 5, 2)), RANDOM.normal(size=(2, 4, 2))

TERMS = {
    "final": Term("qpos", target=[1.0, 2.0], index=[2, 0]),
    "running": Term("qvel", weight=[0.5, 2.0], when="running"),
    "control": Term("ctrl", weight=0.1, when="running"),
    "last control": Term("ctrl", target=0.3),
    "linear": Term("qpos", weight=[1.0, -2.0, 3.0], form="linear"),
    "tracking": Term("qpos", target=RANDOM.normal(size=(2, 5, 3)), when="running"),
}


def test_values_by_hand() -> None:
    loss = Loss(
        [Term("qpos", weight=2.0, target=1.0, index=[1]), Term("ctrl", form="linear", when="running")]
    )
    qpos, qvel, ctrl = np.array([[0.0, 0.0], [5.0, 4.0]]), np.zeros((2, 1)), np.array([[0.25]])
    value, qpos_bar, qvel_bar, ctrl_bar = loss.evaluate(qpos, qvel, ctrl)
    assert value.shape == () and float(value) == 2.0 * 9.0 + 0.25
    assert qpos_bar.tolist() == [[0.0, 0.0], [0.0, 12.0]]
    assert qvel_bar.tolist() == [[0.0], [0.0]]
    assert ctrl_bar.tolist() == [[1.0]]


@pytest.mark.parametrize("name", TERMS)
def test_cotangents_are_the_derivative(name: str) -> None:
    loss = Loss([TERMS[name]])
    bars = dict(zip(("qpos", "qvel", "ctrl"), loss.evaluate(QPOS, QVEL, CTRL)[1:], strict=True))
    arrays = {"qpos": QPOS, "qvel": QVEL, "ctrl": CTRL}
    quantity, step = TERMS[name].quantity, 1e-5
    direction = RANDOM.normal(size=arrays[quantity].shape)
    ahead = loss.evaluate(**{**arrays, quantity: arrays[quantity] + step * direction}).value
    behind = loss.evaluate(**{**arrays, quantity: arrays[quantity] - step * direction}).value
    analytic = (bars[quantity] * direction).sum(axis=(1, 2))
    # the loss is quadratic, so central differences err by rounding only
    np.testing.assert_allclose((ahead - behind) / (2 * step), analytic, rtol=1e-8, atol=1e-9)


def test_an_environment_does_not_depend_on_its_neighbours() -> None:
    loss = Loss(list(TERMS.values())[:5])
    together = loss.evaluate(QPOS, QVEL, CTRL)
    for index in range(2):
        alone = loss.evaluate(QPOS[index], QVEL[index], CTRL[index])
        for part, whole in zip(alone, together, strict=True):
            assert part.tobytes() == np.ascontiguousarray(whole[index]).tobytes()


def test_diverged_environment_has_no_number() -> None:
    qpos = QPOS.copy()
    qpos[1, 3:] = np.nan
    value, *bars = Loss([TERMS["final"]]).evaluate(qpos, QVEL, CTRL)
    assert np.isfinite(value[0]) and np.isnan(value[1])
    assert all((bar[1] == 0.0).all() for bar in bars)


def test_no_controls_is_no_loss() -> None:
    value, *_ = Loss([TERMS["last control"]]).evaluate(QPOS[:, :1], QVEL[:, :1], np.zeros((2, 0, 2)))
    assert value.tolist() == [0.0, 0.0]


def test_json_brings_back_the_same_bits() -> None:
    loss = Loss(list(TERMS.values()))
    again = Loss.from_dict(from_json(to_json(loss.to_dict())))
    for first, second in zip(loss.evaluate(QPOS, QVEL, CTRL), again.evaluate(QPOS, QVEL, CTRL), strict=True):
        assert first.tobytes() == second.tobytes()


MISTAKES: dict[str, tuple[Any, str]] = {
    "name of one element's measure": (
        lambda: Term("site_pos:hand@body:chassis"),
        f"quantity: expected one of qpos, qvel, ctrl, {', '.join(MEASURES)}, "
        "got 'site_pos:hand@body:chassis'; write Term('site_pos', site='hand', relative_to='body:chassis')",
    ),
    "quantity": (
        lambda: Term("qposs"),
        f"quantity: expected one of qpos, qvel, ctrl, {', '.join(MEASURES)}, got 'qposs'",
    ),
    "when": (lambda: Term("qpos", when="always"), "when: expected one of final, running, got 'always'"),
    "weight": (lambda: Term("qpos", weight=np.inf), "weight: expected finite values, got inf"),
    "target": (lambda: Term("qpos", target=[0, np.nan]), "target: expected finite values, got nan at [1]"),
    "index": (lambda: Term("qpos", index=[-1]), "index: expected whole numbers from 0, got [-1]"),
    "ragged": (
        lambda: Term("qpos", index=[[0], [1, 2]]),
        "index: expected whole numbers from 0, got [[0], [1, 2]]",
    ),
    "rows": (lambda: Term("qpos", index=[[]]), "index: expected whole numbers from 0, got [[]]"),  # type: ignore[list-item]
    "repeated": (lambda: Term("qpos", index=[1, 1]), "index: expected each entry once, got [1, 1]"),
    "empty": (lambda: Loss([]), "loss.terms: expected at least one term, got none"),
    "unknown field": (
        lambda: Loss.from_dict({"terms": [{"quantity": "qpos", "wieght": 1}]}),
        "loss.terms.0.wieght: expected a field among elements, form, index, quantity, relative_to, "
        "target, times, weight, when, got wieght",
    ),
    "a word of a document": (
        lambda: Loss.from_dict({"terms": [{"quantity": "qpos"}, {"quantity": "qpos", "when": "now"}]}),
        "loss.terms.1.when: expected one of final, running, got 'now'",
    ),
    "too large index": (
        lambda: Loss([Term("qpos", index=[3])]).evaluate(QPOS, QVEL, CTRL),
        "loss.terms.0.index: expected entries from 0 to 2, got 3; qpos has 3 entries",
    ),
    "shape": (
        lambda: Loss([Term("qpos", target=[1, 2])]).evaluate(QPOS, QVEL, CTRL),
        "loss.terms.0.target: expected a number or a shape that broadcasts to [2, 3], got [2]",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    with pytest.raises(ArgumentError) as caught:
        make()
    assert str(caught.value) == text
    assert caught.value.argument == text.partition(":")[0]
