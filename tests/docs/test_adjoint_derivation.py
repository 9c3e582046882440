"""docs/adjoint.md, the derivation: its equations in dense matrices, against complex steps.

The engine never forms these matrices; tests/engine checks its sweeps. Here the algebra itself is checked,
with the page's numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.docs.complex_step import EPSILON, Array, assert_right, gradient, pulled_back, skew, skew_adjoint

NV, ROWS, SWEEPS, H = 5, 4, 7, 0.1
KINDS = ("bilateral", "unilateral", "friction", "box")
RANDOM = np.random.default_rng(7)
START = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order() -> None:
    RANDOM.bit_generator.state = START


def some(*shape: int) -> Array:
    """Return random numbers of order one."""
    return RANDOM.normal(size=shape)


def solve_rows(a: Array, b: Array, bound: Array) -> tuple[Array, list[Array]]:
    """Return lambda of projected Gauss-Seidel on w = A x + b, and x after every update: (5)."""
    x, tape = np.zeros(ROWS, dtype=np.result_type(a, b, bound)), []
    for _ in range(SWEEPS):
        for r, kind in enumerate(KINDS):
            free = x[r] - (a[r] @ x + b[r]) / a[r, r]
            limit = bound[r] * x[1] if kind == "friction" else bound[r]
            if kind == "unilateral":
                free = free if free.real > 0 else 0 * free
            elif kind in ("friction", "box") and abs(free.real) > limit.real:
                free = np.sign(free.real) * limit
            x[r] = free
            tape.append(x.copy())
    return x, tape


def solve_rows_adjoint(a: Array, bound: Array, tape: list[Array], x_bar: Array) -> tuple[Array, Array, Array]:
    """Return A_bar, b_bar and bound_bar: (11), (12)."""
    x_bar, a_bar, b_bar, bound_bar = x_bar.copy(), np.zeros_like(a), np.zeros(ROWS), np.zeros(ROWS)
    for step in reversed(range(len(tape))):
        r, x = step % ROWS, tape[step]
        g, x_bar[r] = x_bar[r], 0.0
        scale = x[1] if KINDS[r] == "friction" else 1.0
        if KINDS[r] == "unilateral" and x[r] <= 0:
            continue
        if KINDS[r] in ("friction", "box") and abs(x[r]) >= bound[r] * scale:
            sign = 1.0 if x[r] >= bound[r] * scale else -1.0
            bound_bar[r] += sign * scale * g
            if KINDS[r] == "friction":
                x_bar[1] += sign * bound[r] * g
            continue
        s = g / a[r, r]
        b_bar[r] -= s
        a_bar[r] -= s * x
        x_bar -= s * a[r]
        x_bar[r] = 0.0
    return a_bar, b_bar, bound_bar


class Step:
    """A step whose mass matrix, rows and forces depend on numbers theta in a generic way."""

    def __init__(self) -> None:
        root = some(NV, NV)
        self.mass = [root @ root.T + NV * np.eye(NV), *(m + m.T for m in 0.2 * some(2, NV, NV))]
        self.rows = some(3, ROWS, NV)
        self.bias_forces = some(3, NV, NV, NV)
        self.bias = some(3, ROWS)
        self.bound = np.array([0.0, 1.0, 0.5, 0.3])

    def at(self, matrices: list[Array] | Array, theta: Array) -> Array:
        """Return matrices[0] + theta_1 matrices[1] + theta_2 matrices[2]."""
        return matrices[0] + theta[0] * matrices[1] + theta[1] * matrices[2]

    def coriolis(self, theta: Array, v: Array) -> Array:
        """Return C, quadratic in the velocity."""
        return np.einsum("ijk,j,k->i", self.at(self.bias_forces, theta), v, v)

    def forward(self, theta: Array, v: Array, tau: Array, bound: Array) -> Array:
        """Return v+: (1) to (6)."""
        mass, rows = self.at(self.mass, theta), self.at(self.rows, theta)
        free = v + H * np.linalg.solve(mass, tau - self.coriolis(theta, v))
        delassus = rows @ np.linalg.solve(mass, rows.T)
        impulse, _ = solve_rows(delassus, rows @ free + self.at(self.bias, theta), bound)
        return free + np.linalg.solve(mass, rows.T @ impulse)


def test_the_backward_pass_of_a_step() -> None:
    step, clamped = Step(), 0
    for _ in range(20):
        theta, v, tau, after_bar = 0.3 * some(2), some(NV), some(NV), some(NV)
        exact = pulled_back(step.forward, (theta, v, tau, step.bound), (after_bar,))
        mass, rows = step.at(step.mass, theta), step.at(step.rows, theta)
        a0 = np.linalg.solve(mass, tau - step.coriolis(theta, v))
        free = v + H * a0
        x = np.linalg.solve(mass, rows.T)
        delassus, b = rows @ x, rows @ free + step.at(step.bias, theta)
        impulse, tape = solve_rows(delassus, b, step.bound)
        # (9), (10)
        w = np.linalg.solve(mass, after_bar)
        a_bar, b_bar, bound_bar = solve_rows_adjoint(delassus, step.bound, tape, rows @ w)
        # (13), (14)
        free_bar = after_bar + rows.T @ b_bar
        w0 = H * np.linalg.solve(mass, free_bar)
        np.testing.assert_allclose(w0, H * (w + x @ b_bar), rtol=1e-12)
        # (15), (16), (17)
        rows_bar = np.outer(b_bar, free) + (a_bar + a_bar.T) @ x.T + np.outer(impulse, w)
        mass_bar = -np.outer(w, x @ impulse) - x @ a_bar @ x.T - np.outer(w0, a0)
        coriolis = pulled_back(step.coriolis, (theta, v), (w0,))
        theta_bar = [
            np.sum(mass_bar * step.mass[i]) + np.sum(rows_bar * step.rows[i]) + b_bar @ step.bias[i]
            for i in (1, 2)
        ]
        assert_right((np.array(theta_bar) - coriolis[0], free_bar - coriolis[1], w0), exact[:3])
        np.testing.assert_allclose(bound_bar[2:], exact[3][2:], atol=1e-12)
        clamped += np.abs(impulse[2]) >= step.bound[2] * impulse[1]
    assert 0 < clamped < 20


def factors(mass: Array) -> tuple[Array, Array]:
    """Return L (unit lower triangular) and D with M = L' D L."""
    flipped = np.linalg.cholesky(mass[::-1, ::-1]).T[::-1, ::-1]
    return flipped / np.diag(flipped)[:, None], np.diag(flipped) ** 2


def test_the_delassus_matrix_through_the_factors() -> None:
    root, rows, a_bar = some(NV, NV), some(ROWS, NV), some(ROWS, ROWS)
    mass = root @ root.T + np.eye(NV)
    lower, d = factors(mass)
    np.testing.assert_allclose(lower.T @ np.diag(d) @ lower, mass, atol=1e-12)
    np.testing.assert_allclose(np.triu(lower, 1), 0, atol=1e-13)
    y = np.linalg.solve(lower.T, rows.T)
    np.testing.assert_allclose(y.T @ (y / d[:, None]), rows @ np.linalg.solve(mass, rows.T), atol=1e-11)
    exact = pulled_back(lambda y, d: y.T @ (y / d[:, None]), (y, d), (a_bar,))
    y_bar = (y @ (a_bar + a_bar.T)) / d[:, None]
    assert_right((y_bar, -(y * y_bar).sum(axis=1) / (2 * d)), exact)


def motion_cross(d: Array) -> Array:
    """Return the matrix of d x on motions; on forces it is minus its transpose."""
    return np.block([[skew(d[:3]), np.zeros((3, 3))], [skew(d[3:]), skew(d[:3])]])


def test_moments_of_axes_and_inertias() -> None:
    # a link that is displaced by d carries S to S + d x S, and I to I + d x* I - I d x
    s, s_bar, bar = some(6), some(6), some(6, 6)
    bar = bar + bar.T
    by_axis = gradient(lambda d: s_bar @ (s + motion_cross(d) @ s), (np.zeros(6),))
    assert_right((-motion_cross(s).T @ s_bar,), by_axis)

    # a rigid inertia, in the engine's ten numbers
    c, rotational, m = some(3), some(3, 3), 1.3
    rotational = rotational + rotational.T
    h = m * c
    inertia = np.block([[rotational, skew(h)], [-skew(h), m * np.eye(3)]])

    def displaced(d: Array) -> Array:
        return -motion_cross(d).T @ inertia - inertia @ motion_cross(d)

    exact = gradient(lambda d: np.sum(bar * displaced(d)), (np.zeros(6),))[0]
    n_bar, q_bar = bar[:3, :3], bar[:3, 3:]
    h_bar = 2 * skew_adjoint(q_bar)
    turn = -skew_adjoint(rotational @ n_bar)
    moment = np.cross(h, h_bar) + 2 * turn
    force = m * h_bar + 2 * (np.trace(n_bar) * h - n_bar @ h)
    assert_right((np.r_[moment, force],), (exact,))


def test_inverse_dynamics_as_bilinear_forms() -> None:
    # one link: d/d(A, V, Z) and d/dI of Z . (I A + V x* I V)
    inertia, a, v, z = some(6, 6), some(6), some(6), some(6)
    inertia = inertia + inertia.T

    def power(inertia: Array, a: Array, v: Array, z: Array) -> Array:
        return z @ (inertia @ a - motion_cross(v).T @ inertia @ v)

    exact = gradient(power, (inertia, a, v, z))
    vxz = motion_cross(v) @ z
    force_cross = -motion_cross(z).T @ inertia @ v
    inertia_bar = np.outer(z, a) - np.outer(vxz, v)
    ours = (
        inertia_bar,
        inertia @ z,
        -force_cross - inertia @ vxz,
        inertia @ a - motion_cross(v).T @ inertia @ v,
    )
    assert_right(ours, exact)


def quaternion_product(p: Array, q: Array) -> Array:
    """Return p q, components w x y z."""
    return np.append(p[0] * q[0] - p[1:] @ q[1:], p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))


def exponential(d: Array) -> Array:
    """Return the unit quaternion of the rotation vector d."""
    angle = np.sqrt(d @ d)
    return np.append(np.cos(angle / 2), np.sin(angle / 2) / angle * d)


def rotation(q: Array) -> Array:
    """Return the rotation matrix of a unit quaternion."""
    return (q[0] ** 2 - q[1:] @ q[1:]) * np.eye(3) + 2 * np.outer(q[1:], q[1:]) + 2 * q[0] * skew(q[1:])


def rotation_vector_rate(at: Array, moved: Array) -> Array:
    """Return d of at exp(d) = moved, for moved = at + an imaginary step; per unit of the step."""
    rate = quaternion_product(at * np.array([1, -1, -1, -1]), np.imag(moved) / EPSILON)
    return 2 * rate[1:]


def left_jacobian(d: Array) -> Array:
    """Return J_l(d) = 1 + (1 - cos t)/t^2 d_x + (t - sin t)/t^3 d_x d_x."""
    t = np.sqrt(d @ d)
    return np.eye(3) + (1 - np.cos(t)) / t**2 * skew(d) + (t - np.sin(t)) / t**3 * skew(d) @ skew(d)


def test_integration_of_a_quaternion() -> None:
    q, omega, h = some(4), some(3), 0.3
    q /= np.linalg.norm(q)
    after = quaternion_product(q, exponential(h * omega))
    for k, unit in enumerate(np.eye(3)):
        # by the velocity: h J_r(h omega), whose transpose is h J_l(h omega)
        moved = quaternion_product(q, exponential(h * omega + h * 1j * EPSILON * unit))
        np.testing.assert_allclose(
            rotation_vector_rate(after, moved), h * left_jacobian(h * omega).T[:, k], atol=1e-12
        )
        # by the start, q exp(d): exp(h omega)' d
        start = q + quaternion_product(q, np.append(0, 0.5j * EPSILON * unit))
        carried = rotation_vector_rate(after, quaternion_product(start, exponential(h * omega)))
        np.testing.assert_allclose(carried, rotation(exponential(h * omega)).T[:, k], atol=1e-12)


def test_tangent_and_ambient_cotangents() -> None:
    q, bar = 1.7 * some(4), some(4)
    unit = q / np.linalg.norm(q)

    def turned(d: Array) -> Array:
        return unit + quaternion_product(unit, np.append(0 * d[0], 0.5 * d))

    tangent = gradient(lambda d: bar @ turned(d), (np.zeros(3),))[0]
    x, y, z = unit[1:]
    matrix = np.array([[-x, -y, -z], [unit[0], -z, y], [z, unit[0], -x], [-y, x, unit[0]]])
    np.testing.assert_allclose(matrix.T @ bar / 2, tangent, atol=1e-13)
    # back: the model reads q/|q|, so the cotangent by q is 2 E t / |q|, orthogonal to q
    ambient = 2 * matrix @ tangent / np.linalg.norm(q)
    exact = gradient(lambda q: bar @ (q / np.sqrt(q @ q)), (q,))[0]
    np.testing.assert_allclose(ambient, exact, atol=1e-13)
    assert abs(ambient @ q) < 1e-13
