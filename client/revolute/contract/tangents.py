"""Operations on configurations [..., nq] and their tangents [..., nv].

As in MuJoCo, the tangent of a quaternion q is a rotation vector r in the moving frame:

    move:        q exp(r)                                       (1)
    difference:  r = log(conj(a) b)                             (2)
    rate:        dq = q (0, r) / 2;  its transpose: pull        (3)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from .arrays import Float64Array


class Joints(Protocol):
    """The joints of a model."""

    @property
    def nq(self) -> int:
        """Numbers in qpos."""

    @property
    def nv(self) -> int:
        """Degrees of freedom."""

    @property
    def joint_types(self) -> Sequence[str]:
        """Types of the joints in the order of qpos: "free", "ball", "slide" or "hinge"."""


def _blocks(model: Joints) -> Iterator[tuple[slice, slice, bool]]:
    """Yield matching slices of qpos and of a tangent, and whether they are a rotation."""
    q = v = 0
    for kind in model.joint_types:
        linear = {"free": 3, "ball": 0}.get(kind, 1)
        if linear:
            yield slice(q, q + linear), slice(v, v + linear), False
            q, v = q + linear, v + linear
        if kind in ("free", "ball"):
            yield slice(q, q + 4), slice(v, v + 3), True
            q, v = q + 4, v + 3


def _product(a: Float64Array, b: Float64Array) -> Float64Array:
    """Return the product of quaternions [..., 4]."""
    scalar = a[..., :1] * b[..., :1] - (a[..., 1:] * b[..., 1:]).sum(axis=-1, keepdims=True)
    vector = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])
    return np.concatenate([scalar, vector], axis=-1)


def _conjugate(a: Float64Array) -> Float64Array:
    return a * np.array([1.0, -1.0, -1.0, -1.0])


def _pure(vector: Float64Array) -> Float64Array:
    return np.concatenate([np.zeros((*vector.shape[:-1], 1)), vector], axis=-1)


def move(model: Joints, qpos: Float64Array, tangent: Float64Array) -> Float64Array:
    """Return configurations moved along tangents (1); leading axes broadcast."""
    shape = np.broadcast_shapes(qpos.shape[:-1], tangent.shape[:-1])
    result = np.array(np.broadcast_to(qpos, (*shape, model.nq)))
    for q, v, turns in _blocks(model):
        if not turns:
            result[..., q] += tangent[..., v]
            continue
        half = 0.5 * tangent[..., v]
        angle = np.linalg.norm(half, axis=-1, keepdims=True)
        turn = np.concatenate([np.cos(angle), np.sinc(angle / np.pi) * half], axis=-1)
        result[..., q] = _product(result[..., q], np.broadcast_to(turn, (*shape, 4)))
    return result


def difference(model: Joints, start: Float64Array, end: Float64Array) -> Float64Array:
    """Return the tangents from one configuration to another (2)."""
    tangent = np.zeros((*end.shape[:-1], model.nv))
    for q, v, turns in _blocks(model):
        if not turns:
            tangent[..., v] = end[..., q] - start[..., q]
            continue
        turn = _product(_conjugate(start[..., q]), end[..., q])
        turn = turn * np.where(turn[..., :1] < 0, -1.0, 1.0)
        sine = np.linalg.norm(turn[..., 1:], axis=-1, keepdims=True)
        angle = 2 * np.arctan2(sine, turn[..., :1])
        tangent[..., v] = np.where(sine > 0, angle / np.where(sine > 0, sine, 1.0), 2.0) * turn[..., 1:]
    return tangent


def rate(model: Joints, qpos: Float64Array, tangent: Float64Array) -> Float64Array:
    """Return the rates of configurations along tangents (3)."""
    result = np.zeros((*np.broadcast_shapes(qpos.shape[:-1], tangent.shape[:-1]), model.nq))
    for q, v, turns in _blocks(model):
        result[..., q] = 0.5 * _product(qpos[..., q], _pure(tangent[..., v])) if turns else tangent[..., v]
    return result


def pull(model: Joints, qpos: Float64Array, qpos_bar: Float64Array) -> Float64Array:
    """Return the transpose of `rate` on cotangents of configurations (3)."""
    result = np.zeros((*qpos_bar.shape[:-1], model.nv))
    for q, v, turns in _blocks(model):
        if turns:
            result[..., v] = 0.5 * _product(_conjugate(qpos[..., q]), qpos_bar[..., q])[..., 1:]
        else:
            result[..., v] = qpos_bar[..., q]
    return result


def normalized(model: Joints, qpos: Float64Array) -> Float64Array:
    """Return configurations with quaternions of unit length."""
    result = np.array(qpos)
    for q, _, turns in _blocks(model):
        if turns:
            result[..., q] /= np.linalg.norm(result[..., q], axis=-1, keepdims=True)
    return result
