"""tests/docs/seed_paper.md, "The seed paper's operators, corrected": every row, checked by itself.

For each row the corrected formula is compared with a complex-step derivative on random inputs, and what the
paper prints is shown to fail on the same inputs. E is a generic 3x3 matrix, its adjoint has nine numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.docs.complex_step import (
    Array,
    assert_right,
    assert_wrong,
    distance,
    gradient,
    pulled_back,
    skew,
    skew_adjoint,
)

RANDOM = np.random.default_rng(20210718)
START = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order() -> None:
    RANDOM.bit_generator.state = START


def some(*shape: int) -> Array:
    """Return random numbers of order one."""
    return RANDOM.normal(size=shape)


def motion_transform(e: Array, r: Array) -> Array:
    """Return X = [E 0; -E r_x E] (Featherstone 2008, equation 2.24)."""
    return np.block([[e, np.zeros((3, 3))], [-e @ skew(r), e]])


# --- spatial transforms: rows 1 to 3 --------------------------------------------------------------------


def test_row_01_apply() -> None:
    def apply(e: Array, r: Array, a1: Array, a2: Array) -> tuple[Array, Array]:
        return e @ a1, e @ (a2 - np.cross(r, a1))

    e, r, a1, a2, b1_bar, b2_bar = some(3, 3), some(3), some(3), some(3), some(3), some(3)
    assert distance(np.concatenate(apply(e, r, a1, a2)), motion_transform(e, r) @ np.r_[a1, a2]) < 1e-13
    exact = pulled_back(apply, (e, r, a1, a2), (b1_bar, b2_bar))
    e_bar = np.outer(b1_bar, a1) + np.outer(b2_bar, a2 - np.cross(r, a1))
    r_bar = np.cross(e.T @ b2_bar, a1)
    a1_bar = e.T @ b1_bar + np.cross(r, e.T @ b2_bar)
    assert_right((e_bar, r_bar, a1_bar, e.T @ b2_bar), exact)
    assert_wrong(np.outer(a1, b1_bar) + np.outer(a2 - np.cross(r, a1), b2_bar), exact[0])


def test_row_02_apply_transpose() -> None:
    def apply_transpose(e: Array, r: Array, a1: Array, a2: Array) -> tuple[Array, Array]:
        return e.T @ a1 + np.cross(r, e.T @ a2), e.T @ a2

    e, r, a1, a2, b1_bar, b2_bar = some(3, 3), some(3), some(3), some(3), some(3), some(3)
    value = np.concatenate(apply_transpose(e, r, a1, a2))
    assert distance(value, motion_transform(e, r).T @ np.r_[a1, a2]) < 1e-13
    exact = pulled_back(apply_transpose, (e, r, a1, a2), (b1_bar, b2_bar))
    turned = np.cross(b1_bar, r) + b2_bar
    e_bar = np.outer(a1, b1_bar) + np.outer(a2, turned)
    assert_right((e_bar, np.cross(e.T @ a2, b1_bar), e @ b1_bar, e @ turned), exact)
    assert_wrong(np.outer(b1_bar, a1) + np.outer(turned, a2), exact[0])


def test_row_03_apply_inverse_transpose() -> None:
    def apply_inverse_transpose(e: Array, r: Array, a1: Array, a2: Array) -> tuple[Array, Array]:
        return e @ (a1 - np.cross(r, a2)), e @ a2

    e, r, a1, a2, b1_bar, b2_bar = some(3, 3), some(3), some(3), some(3), some(3), some(3)
    rotation = np.linalg.qr(e)[0]
    force = np.linalg.solve(motion_transform(rotation, r).T, np.r_[a1, a2])
    assert distance(np.concatenate(apply_inverse_transpose(rotation, r, a1, a2)), force) < 1e-12
    printed = np.r_[rotation.T @ (a1 - np.cross(r, a2)), rotation.T @ a2]
    assert_wrong(printed, force)
    exact = pulled_back(apply_inverse_transpose, (e, r, a1, a2), (b1_bar, b2_bar))
    back = e.T @ b1_bar
    e_bar = np.outer(b1_bar, a1 - np.cross(r, a2)) + np.outer(b2_bar, a2)
    assert_right((e_bar, np.cross(back, a2), back, e.T @ b2_bar - np.cross(back, r)), exact)


# --- spatial dyads: rows 4 to 7 -------------------------------------------------------------------------


def test_row_04_dyad_times_vector() -> None:
    def transpose_times(m: Array, w: Array, v: Array) -> tuple[Array, Array]:
        return m[:3, :3].T @ w + m[3:, :3].T @ v, m[:3, 3:].T @ w + m[3:, 3:].T @ v

    m, w, v, w0_bar, v0_bar = some(6, 6), some(3), some(3), some(3), some(3)
    a, b, c, d = m[:3, :3], m[:3, 3:], m[3:, :3], m[3:, 3:]
    value = np.concatenate(transpose_times(m, w, v))
    assert distance(value, m.T @ np.r_[w, v]) < 1e-13
    printed = np.r_[a.T @ w + b.T @ v, c.T @ w + d.T @ v]
    for meaning in (m.T, m, np.linalg.inv(m)):
        assert_wrong(printed, meaning @ np.r_[w, v])
    exact = pulled_back(transpose_times, (m, w, v), (w0_bar, v0_bar))
    m_bar = np.block([[np.outer(w, w0_bar), np.outer(w, v0_bar)], [np.outer(v, w0_bar), np.outer(v, v0_bar)]])
    assert_right((m_bar, a @ w0_bar + b @ v0_bar, c @ w0_bar + d @ v0_bar), exact)


def test_row_05_dyad_of_two_vectors() -> None:
    def dyad(w1: Array, v1: Array, w2: Array, v2: Array) -> Array:
        return np.outer(np.r_[w1, v1], np.r_[w2, v2])

    vectors, bar = (some(3), some(3), some(3), some(3)), some(6, 6)
    exact = pulled_back(dyad, vectors, (bar,))
    w1, v1, w2, v2 = vectors
    b11, b12, b21, b22 = bar[:3, :3], bar[:3, 3:], bar[3:, :3], bar[3:, 3:]
    ours = (b11 @ w2 + b12 @ v2, b21 @ w2 + b22 @ v2, b11.T @ w1 + b21.T @ v1, b12.T @ w1 + b22.T @ v1)
    assert_right(ours, exact)
    assert_wrong(b21.T @ w1 + b22.T @ v1, exact[3])


def transform_cotangent(bar: Array, e: Array, r: Array) -> tuple[Array, Array]:
    """Return the corrected adjoint of row 6: from a cotangent of the 6x6 matrix X to those of E and r."""
    b21 = bar[3:, :3]
    return bar[:3, :3] + bar[3:, 3:] + b21 @ skew(r), -skew_adjoint(e.T @ b21)


def test_row_06_transform_as_dyad() -> None:
    e, r, bar = some(3, 3), some(3), some(6, 6)
    exact = pulled_back(motion_transform, (e, r), (bar,))
    assert_right(transform_cotangent(bar, e, r), exact)
    b11, b21, b22 = bar[:3, :3], bar[3:, :3], bar[3:, 3:]
    assert_wrong(b11.T + b22.T - skew(r) @ b21, exact[0])
    assert_wrong(-skew_adjoint(e @ b21), exact[1])
    # read as an adjoint of R = E', which the released code stores, a transpose is still missing
    assert_wrong(b11.T + b22.T - skew(r) @ b21, exact[0].T)
    assert_right((b11.T + b22.T - skew(r) @ b21.T,), (exact[0].T,))


def test_row_07_shift() -> None:
    def shift(e: Array, r: Array, m: Array) -> Array:
        a = motion_transform(e, r)
        return a.T @ m @ a

    e, r, m, bar = some(3, 3), some(3), some(6, 6), some(6, 6)
    exact = pulled_back(shift, (e, r, m), (bar,))
    a = motion_transform(e, r)
    e_bar, r_bar = transform_cotangent(m.T @ a @ bar + m @ a @ bar.T, e, r)
    assert_right((e_bar, r_bar, a @ bar @ a.T), exact)


# --- quaternions and norms: rows 8 to 10 ----------------------------------------------------------------


def quaternion_product(p: Array, q: Array) -> Array:
    """Return p q, components in the paper's order x y z w."""
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.append(vector, p[3] * q[3] - p[:3] @ q[:3])


def times_pure(q: Array, v: Array) -> Array:
    """Return q (v, 0)."""
    return quaternion_product(q, np.append(v, 0 * v[0]))


def test_row_08_quaternion_times_vector_by_the_quaternion() -> None:
    q, v, bar = some(4), some(3), some(4)
    exact = pulled_back(times_pure, (q, v), (bar,))
    bx, by, bz, bw = bar
    ours = [-by * v[2] + bz * v[1] - bw * v[0], bx * v[2] - bz * v[0] - bw * v[1]]
    ours += [-bx * v[1] + by * v[0] - bw * v[2], bx * v[0] + by * v[1] + bz * v[2]]
    assert_right((np.array(ours),), exact[:1])
    # printed: the three rows of the cotangent of v (row 9, misprint included), and no fourth
    x, y, z, w = q
    printed = [
        bx * w - by * z + bz * y - bw * x,
        bx * z + by * w - bz * x - bw * y,
        -bx * y + by * x + bz * w - bw * z,
    ]
    assert_wrong(np.array(printed), exact[0][:3])


def test_row_09_quaternion_times_vector_by_the_vector() -> None:
    q, v, bar = some(4), some(3), some(4)
    exact = pulled_back(times_pure, (q, v), (bar,))[1]
    (x, y, z, w), (bx, by, bz, bw) = q, bar
    ours = [
        bx * w + by * z - bz * y - bw * x,
        -bx * z + by * w + bz * x - bw * y,
        bx * y - by * x + bz * w - bw * z,
    ]
    assert_right((np.array(ours),), (exact,))
    # printed: the signs of (v, 0) q
    printed = [
        bx * w - by * z + bz * y - bw * x,
        bx * z + by * w - bz * x - bw * y,
        -bx * y + by * x + bz * w - bw * z,
    ]
    assert_wrong(np.array(printed), exact)
    reverse = pulled_back(lambda v: quaternion_product(np.append(v, 0 * v[0]), q), (v,), (bar,))
    assert_right((np.array(printed),), reverse)


def test_row_10_norm() -> None:
    a, bar = some(3), some(1)[0]
    exact = pulled_back(lambda a: np.sqrt(a @ a), (a,), (bar,))
    middle = 0.5 * bar * (a @ a) ** -0.5 * (2 * a)
    assert_right((middle,), exact)
    assert_right((bar * a / np.sqrt(a @ a),), exact)  # the paper's last line
    assert_wrong(-middle, exact[0])


# --- projected Gauss-Seidel: rows 11 to 14 --------------------------------------------------------------


def spd(n: int) -> Array:
    """Return a well-conditioned symmetric positive matrix."""
    a = some(n, n)
    return a @ a.T / n + np.eye(n)


def sweeps(a: Array, b: Array, count: int) -> tuple[Array, Array]:
    """Return Gauss-Seidel's x for A x = b from zero, and the tape of every update's result."""
    x, tape = np.zeros(len(b), dtype=b.dtype), np.zeros((count, len(b)), dtype=b.dtype)
    for t in range(count):
        for i in range(len(b)):
            d = a[i] @ x - a[i, i] * x[i]
            x[i] = (b[i] - d) / a[i, i]
            tape[t, i] = x[i]
    return x, tape


def sweeps_adjoint(a: Array, b: Array, tape: Array, x_bar: Array, mistake: str = "") -> tuple[Array, Array]:
    """Return A_bar and b_bar by Algorithm 1, corrected; `mistake` puts one misprint back."""
    count, n = tape.shape
    a_bar, b_bar, x, x_bar = np.zeros((n, n)), np.zeros(n), tape[-1].copy(), x_bar.copy()
    for t in reversed(range(count)):
        for i in reversed(range(n)):
            g, x_bar[i] = x_bar[i], 0.0
            x[i] = tape[t - 1, i] if t > 0 else 0.0
            d = a[i] @ x - a[i, i] * x[i]
            if mistake == "b_bar is one number":
                b_bar += g / a[i, i]
            else:
                b_bar[i] += g / a[i, i]
            a_bar[i, i] -= g * (b[i] - d) / a[i, i] ** 2
            d_bar = -g / a[i, i]
            for j in set(range(n)) - {i}:
                kept = a_bar[i, j] * d_bar if mistake == "A_bar is multiplied" else a_bar[i, j]
                a_bar[i, j] = kept + d_bar * x[j]
                x_bar[j] += d_bar * a[i, j]
    return a_bar, b_bar


def test_row_11_algorithm_1() -> None:
    a, b, x_bar, count = spd(5), some(5), some(5), 3
    exact = pulled_back(lambda a, b: sweeps(a, b, count)[0], (a, b), (x_bar,))
    _, tape = sweeps(a, b, count)
    assert_right(sweeps_adjoint(a, b, tape, x_bar), exact)
    assert_wrong(sweeps_adjoint(a, b, tape, x_bar, "b_bar is one number")[1], exact[1])
    assert_wrong(sweeps_adjoint(a, b, tape, x_bar, "A_bar is multiplied")[0], exact[0])
    # stored after the loop over i, only the last row of each sweep reaches the tape
    late = np.zeros_like(tape)
    late[:, -1] = tape[:, -1]
    assert_wrong(sweeps_adjoint(a, b, late, x_bar)[0], exact[0])
    # "A = 0, b = 0" in the place of their cotangents divides by zero
    with np.errstate(invalid="ignore", divide="ignore"):
        assert not np.isfinite(sweeps_adjoint(0 * a, 0 * b, tape, x_bar)[1]).all()


def test_row_11_the_sum_over_the_other_rows() -> None:
    a, b = spd(4), some(4)
    x = np.zeros(4)
    for _ in range(300):
        for i in range(4):
            x[i] = (b[i] - sum(a[i, i] * x[j] for j in range(4) if j != i)) / a[i, i]
    assert not distance(a @ x, b) < 0.01
    assert distance(a @ sweeps(a, b, 300)[0], b) < 1e-10


def test_row_12_which_system_the_update_solves() -> None:
    a, b = spd(5), some(5)
    x, _ = sweeps(a, b, 300)
    assert np.abs(a @ x - b).max() < 1e-10
    assert np.abs(a @ x + b).max() > 0.1  # printed: A x + b = 0


Row = tuple[str, int]
ROWS: tuple[Row, ...] = (
    ("normal", 0),
    ("friction", 0),
    ("friction", 0),
    ("normal", 3),
    ("friction", 3),
    ("free", 0),
)


def clipped_sweeps(a: Array, b: Array, mu: Array, count: int) -> tuple[Array, Array]:
    """Return projected Gauss-Seidel's x for A x = b with rows of ROWS, and its tape."""
    x, tape = np.zeros(len(b), dtype=np.result_type(a, b, mu)), []
    for _ in range(count):
        for i, (kind, normal) in enumerate(ROWS):
            x[i] = (b[i] - (a[i] @ x - a[i, i] * x[i])) / a[i, i]
            if kind == "normal" and x[i].real < 0:
                x[i] = 0
            bound = mu * x[normal]
            if kind == "friction" and abs(x[i].real) > bound.real:
                x[i] = np.sign(x[i].real) * bound
            tape.append(x.copy())
    return x, np.array(tape)


def clipped_sweeps_adjoint(
    a: Array, b: Array, mu: float, tape: Array, x_bar: Array
) -> tuple[Array, Array, float]:
    """Return A_bar, b_bar and mu_bar: row 14."""
    n, x_bar, a_bar, b_bar, mu_bar = len(b), x_bar.copy(), np.zeros_like(a), np.zeros_like(b), 0.0
    for step in reversed(range(len(tape))):
        i, x = step % n, tape[step]
        kind, normal = ROWS[i]
        g, x_bar[i] = x_bar[i], 0.0
        if kind == "normal" and x[i] <= 0:
            continue
        if kind == "friction" and abs(x[i]) >= mu * x[normal]:
            c, s = np.sign(x[i]), x[normal]
            mu_bar += c * s * g
            if s > 0:
                x_bar[normal] += c * mu * g
            continue
        d = a[i] @ x - a[i, i] * x[i]
        b_bar[i] += g / a[i, i]
        a_bar[i, i] -= g * (b[i] - d) / a[i, i] ** 2
        for j in set(range(n)) - {i}:
            a_bar[i, j] -= g / a[i, i] * x[j]
            x_bar[j] -= g / a[i, i] * a[i, j]
    return a_bar, b_bar, mu_bar


def test_row_13_friction_rows_have_both_signs() -> None:
    n, mu, seen = len(ROWS), 0.4, set()
    for _ in range(30):
        a, b = spd(n), some(n)
        x, _ = clipped_sweeps(a, b, np.array(mu), 2000)
        residual = a @ x - b
        for i, (kind, normal) in enumerate(ROWS):
            bound = mu * x[normal]
            if kind == "normal":
                assert x[i] >= 0 and residual[i] > -1e-9 and abs(x[i] * residual[i]) < 1e-9
            elif kind == "free" or abs(x[i]) < bound:
                assert abs(residual[i]) < 1e-9
                seen.add("inside")
            elif x[i] < 0:
                assert residual[i] > -1e-9
                seen.add("lower")  # x < 0: printed 0 <= x does not hold
            elif x[i] > 0:
                assert residual[i] < 1e-9
                seen.add("upper" if residual[i] < -1e-6 else "inside")  # a < 0: printed 0 <= a does not hold
    assert seen == {"inside", "lower", "upper"}


def test_row_14_clipped_rows() -> None:
    n, count, mu, clamped = len(ROWS), 4, 0.4, 0
    for _ in range(50):
        a, b, x_bar = spd(n), some(n), some(n)
        x, tape = clipped_sweeps(a, b, np.array(mu), count)
        exact = pulled_back(
            lambda a, b, mu: clipped_sweeps(a, b, mu, count)[0], (a, b, np.array(mu)), (x_bar,)
        )
        ours = clipped_sweeps_adjoint(a, b, mu, tape, x_bar)
        for bar, reference in zip(ours, exact, strict=True):
            np.testing.assert_allclose(bar, reference, rtol=0, atol=1e-11)
        # the printed simplification differentiates every row as if it were free
        if np.abs(x).min() == 0 or any(
            abs(x[i]) == mu * x[r[1]] for i, r in enumerate(ROWS) if r[0] == "friction"
        ):
            clamped += 1
            assert np.abs(sweeps_adjoint(a, b, tape[n - 1 :: n], x_bar)[1] - exact[1]).max() > 1e-3
    assert clamped > 20


# --- dynamics, rewards, checkpoints: rows 15 to 19 ------------------------------------------------------


def test_row_15_sign_of_the_reward() -> None:
    links, path = 3, some(20, 3)
    target, path[0], path[-1] = np.array([0, 0, 0.5 * links]), (0, 0.5 * links, 0), (0, 0, 0.5 * links)
    squared = ((path - target) ** 2).sum(axis=1)
    corrected = squared[:-1] - squared[1:]
    corrected[-1] -= squared[-1]
    assert corrected.sum() == pytest.approx(links**2 / 2, rel=1e-12)  # the bound that the paper states
    assert (squared[1:] - squared[:-1]).sum() == pytest.approx(-(links**2) / 2, rel=1e-12)


def test_row_16_the_matrix_is_that_of_the_constraints() -> None:
    nv, rows, cfm = 6, 3, 1e-3
    mass, jacobian, velocity = spd(nv), some(rows, nv), some(nv)
    delassus = jacobian @ np.linalg.solve(mass, jacobian.T) + cfm * np.eye(rows)
    impulse = np.linalg.solve(delassus, -jacobian @ velocity)
    after = velocity + np.linalg.solve(mass, jacobian.T @ impulse)
    np.testing.assert_allclose(jacobian @ after, -cfm * impulse, atol=1e-12)
    # an impulse per row, not a state; the inertia matrix has another size
    assert impulse.shape != velocity.shape and delassus.shape != mass.shape


def test_row_17_bias_force() -> None:
    def inertia(displacement: Array) -> Array:
        # about the origin of the world, after the body has been moved by a small screw
        x = motion_transform(np.eye(3) - skew(displacement[:3]), displacement[3:])
        return x.T @ body @ x

    c, rotational, m = some(3), spd(3), 1.7
    body = np.block([[rotational - m * skew(c) @ skew(c), m * skew(c)], [-m * skew(c), m * np.eye(3)]])
    v, a, f_external = some(6), some(6), some(6)
    cross_motion = np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])
    cross_force = -cross_motion.T
    # rate of the momentum I v in world axes
    rate = np.imag(inertia(1e-30j * v) @ (v + 1e-30j * a)) / 1e-30
    assert_right((body @ a + cross_force @ body @ v,), (rate,))
    # I a + p = force of the joint: where that is zero, momentum changes at the rate f_external
    p = cross_force @ body @ v - f_external
    free = np.linalg.solve(body, -p)
    assert_right((body @ free + cross_force @ body @ v,), (f_external,))
    wrong = np.linalg.solve(body, -(cross_force @ body @ v + f_external))
    assert_wrong(body @ wrong + cross_force @ body @ v, f_external)
    # the second operand is a force: as a motion it does not transform like one
    assert_wrong(cross_motion @ body @ v, cross_force @ body @ v)


def test_row_18_start_of_the_adjoint_recursion() -> None:
    n, steps = 4, 5
    matrices, weights, x0 = some(steps, n, n), some(1, n), some(n, 1)

    def objective(x: Array) -> Any:
        for matrix in matrices:
            x = matrix @ x
        return (weights @ x)[0, 0] ** 2

    x = x0
    for matrix in matrices:
        x = matrix @ x
    derivative = 2 * (weights @ x) * weights  # d Phi / d x of the last state: a row
    r = derivative.T
    for matrix in matrices[::-1]:
        r = matrix.T @ r
    assert_right((r,), gradient(objective, (x0,)))
    with pytest.raises(ValueError, match="mismatch"):
        _ = matrices[-1].T @ derivative
    positions, velocities = 19, 18  # Laikago
    assert positions + velocities == 37 != 2 * positions


def counting_step() -> tuple[Callable[[float], float], list[int]]:
    """Return a step, and where it counts its calls."""
    calls = [0]

    def step(x: float) -> float:
        calls[0] += 1
        return x + 0.1 * np.sin(x)

    return step, calls


def test_row_19_replay_of_a_segment() -> None:
    steps, k = 24, 6
    step, calls = counting_step()
    stored, x = {}, 0.7
    for t in range(steps):
        if t % k == 0:
            stored[t] = x
        x = step(x)
    bars = []
    for keep in (
        False,
        True,
    ):  # keep: one replay per segment, its states kept; else one replay per step, as printed
        calls[0], bar = 0, 1.0
        for start in range(steps - k, -1, -k):
            if keep:
                states = [stored[start]]
                while len(states) < k:
                    states.append(step(states[-1]))
            for back in range(k - 1, -1, -1):
                if not keep:
                    x = stored[start]
                    for _ in range(back):
                        x = step(x)
                bar *= 1 + 0.1 * np.cos(states[back] if keep else x)
                calls[0] += not keep  # the step's own forward pass: k, k - 1, ..., 1
        bars.append(bar)
        assert calls[0] == (steps // k * (k - 1) if keep else steps * (k + 1) // 2)
    assert bars[0] == bars[1]


# --- rows that the paper prints right -------------------------------------------------------------------

m1, m2, w, v = some(3, 3), some(3, 3), some(3), some(3)
x6, y6, e6, r6, f6 = some(6), some(6), some(3, 3), some(3), some(6)
RIGHT: dict[str, tuple[Callable[..., Any], tuple[Array, ...], Callable[..., tuple[Any, ...]]]] = {
    "matrix times vector": (lambda a, x: a @ x, (m1, v), lambda bar, a, x: (np.outer(bar, x), a.T @ bar)),
    "matrix times matrix": (lambda a, b: a @ b, (m1, m2), lambda bar, a, b: (bar @ b.T, a.T @ bar)),
    "A' B A": (
        lambda a, b: a.T @ b @ a,
        (m1, m2),
        lambda bar, a, b: (b @ a @ bar.T + b.T @ a @ bar, a @ bar @ a.T),
    ),
    "inverse": (
        lambda a: np.linalg.inv(a),
        (spd(3),),
        lambda bar, a: (-np.linalg.inv(a).T @ bar @ np.linalg.inv(a).T,),
    ),
    "triple product": (
        lambda a, b, c: a @ np.cross(b, c),
        (w, v, some(3)),
        lambda bar, a, b, c: (bar * np.cross(b, c), bar * np.cross(c, a), bar * np.cross(a, b)),
    ),
    "cross": (np.cross, (w, v), lambda bar, a, b: (np.cross(b, bar), np.cross(bar, a))),
    "v_x": (skew, (v,), lambda bar, v: (skew_adjoint(bar),)),
    "apply inverse": (
        lambda e, r, x: np.r_[e.T @ x[:3], np.cross(r, e.T @ x[:3]) + e.T @ x[3:]],
        (e6, r6, x6),
        lambda bar, e, r, x: (
            np.outer(x[:3], bar[:3] + np.cross(bar[3:], r)) + np.outer(x[3:], bar[3:]),
            np.cross(e.T @ x[:3], bar[3:]),
            np.r_[e @ (bar[:3] + np.cross(bar[3:], r)), e @ bar[3:]],
        ),
    ),
    "transform times transform": (
        lambda ea, ra, eb, rb: np.r_[(ea @ eb).ravel(), rb + eb.T @ ra],
        (m1, w, m2, v),
        lambda bar, ea, ra, eb, rb: (
            bar[:9].reshape(3, 3) @ eb.T,
            eb @ bar[9:],
            ea.T @ bar[:9].reshape(3, 3) + np.outer(ra, bar[9:]),
            bar[9:],
        ),
    ),
    "crossm": (
        lambda a, b: np.r_[np.cross(a[:3], b[:3]), np.cross(a[:3], b[3:]) + np.cross(a[3:], b[:3])],
        (x6, y6),
        lambda bar, a, b: (
            np.r_[np.cross(b[:3], bar[:3]) + np.cross(b[3:], bar[3:]), np.cross(b[:3], bar[3:])],
            np.r_[np.cross(bar[:3], a[:3]) + np.cross(bar[3:], a[3:]), np.cross(bar[3:], a[:3])],
        ),
    ),
    "crossf": (
        lambda a, f: np.r_[np.cross(a[:3], f[:3]) + np.cross(a[3:], f[3:]), np.cross(a[:3], f[3:])],
        (x6, f6),
        lambda bar, a, f: (
            np.r_[np.cross(f[:3], bar[:3]) + np.cross(f[3:], bar[3:]), np.cross(f[3:], bar[:3])],
            np.r_[np.cross(bar[:3], a[:3]), np.cross(bar[3:], a[:3]) + np.cross(bar[:3], a[3:])],
        ),
    ),
    "dyad times vector (mul-ori)": (
        lambda m, x: m @ x,
        (some(6, 6), x6),
        lambda bar, m, x: (np.outer(bar, x), m.T @ bar),
    ),
    "quaternion times quaternion": (
        quaternion_product,
        (some(4), some(4)),
        lambda bar, p, q: (quaternion_product(bar, q * CONJUGATE), quaternion_product(p * CONJUGATE, bar)),
    ),
}
CONJUGATE = np.array([-1.0, -1.0, -1.0, 1.0])


@pytest.mark.parametrize("name", RIGHT)
def test_rows_that_are_printed_right(name: str) -> None:
    forward, inputs, adjoint = RIGHT[name]
    bar = some(*np.shape(forward(*inputs)))
    assert_right(adjoint(bar, *inputs), pulled_back(forward, inputs, (bar,)))
