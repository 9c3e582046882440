"""A toy step in 37 numbers, x_i += 1/x_{i-1} one after the other, that a script can hold without an engine.

It is the arithmetic by which the seed paper timed the autodiff tools that cannot run an engine, 37 times
a + 1/b per step. Loss: the sum of the last state. `by_hand` is the reverse of it, written out.
"""

from __future__ import annotations

import statistics
from time import process_time
from typing import Any

import numpy as np

SIZE = 37
Result = dict[str, Any]


def start() -> np.ndarray:
    """Return the start state."""
    return 1.0 + np.arange(SIZE) / SIZE


def by_hand(steps: int) -> np.ndarray:
    """Return the gradient by the start state, from the stored denominators."""
    x, denominators = start(), np.empty((steps, SIZE))
    for t in range(steps):
        for i in range(SIZE):
            denominators[t, i] = x[i - 1]
            x[i] += 1.0 / x[i - 1]
    bar = np.ones(SIZE)
    for t in reversed(range(steps)):
        for i in reversed(range(SIZE)):
            bar[i - 1] -= bar[i] / denominators[t, i] ** 2
    return bar


def jax_eager(steps: int) -> Result:
    """JAX as a script is written: Python loops over scalars, without jit."""
    import jax

    jax.config.update("jax_enable_x64", True)

    def loss(x: Any) -> Any:
        values = list(x)
        for _ in range(steps):
            values = one_step(values)
        return sum(values)

    return _timed(lambda: float(loss(jax.numpy.asarray(start()))), lambda: jax.grad(loss)(start()))


def jax_scan(steps: int) -> Result:
    """The same arithmetic in JAX under jit, as a scan over the steps; compilation apart."""
    import jax

    jax.config.update("jax_enable_x64", True)

    def body(x: Any, _: None) -> tuple[Any, None]:
        return jax.numpy.stack(one_step(list(x))), None

    def loss(x: Any) -> Any:
        return jax.numpy.sum(jax.lax.scan(body, x, None, length=steps)[0])

    forward, gradient = jax.jit(loss), jax.jit(jax.grad(loss))
    begin = process_time()
    forward(start()).block_until_ready()
    gradient(start()).block_until_ready()
    compiling = process_time() - begin
    return {
        **_timed(lambda: float(forward(start())), lambda: gradient(start()).block_until_ready(), repeats=5),
        "compile_s": compiling,
    }


def torch_scalars(steps: int) -> Result:
    """PyTorch, a tensor for every number."""
    import torch

    torch.set_num_threads(1)
    inputs = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in start()]
    begin = process_time()
    values: list[Any] = list(inputs)
    for _ in range(steps):
        values = one_step(values)
    loss = sum(values)
    middle = process_time()
    loss.backward()
    end = process_time()
    gradient = np.array([float(value.grad) for value in inputs])  # type: ignore[arg-type]
    return {"forward_seconds": middle - begin, "backward_seconds": end - middle, "gradient": gradient}


def one_step(values: list[Any]) -> list[Any]:
    """Return the next state, for any kind of number."""
    out = list(values)
    for i in range(SIZE):
        out[i] = out[i] + 1.0 / out[i - 1]
    return out


def _timed(forward: Any, gradient: Any, repeats: int = 1) -> Result:
    """Time a forward pass, and a gradient whose forward pass is taken off; medians of `repeats`."""
    forwards, totals = [], []
    for _ in range(repeats):
        begin = process_time()
        forward()
        middle = process_time()
        result = gradient()
        forwards.append(middle - begin)
        totals.append(process_time() - middle)
    forward_seconds = statistics.median(forwards)
    return {
        "forward_seconds": forward_seconds,
        "backward_seconds": max(0.0, statistics.median(totals) - forward_seconds),
        "gradient": np.asarray(result, dtype=float),
    }
