"""Checks gradients of trajectories against finite differences, from a whole rollout down to single steps.

- `start`: a trajectory to check when the user gives none, and the scale of each input.
- `differences`: directional derivatives of the whole trajectory by differences of many step sizes.
- `single_steps`: the same for each step by itself, where the whole is too unstable or switches.
- `opposed`: whether backward and forward derivatives differ by more than rounding.
- `entries`: single entries by name.
- `one_input`: puts them together for one input; `check` for all.
- `held_bytes`: what all this holds.
"""

from .check import check_gradient, check_options
from .held_bytes import held_bytes

__all__ = ["check_gradient", "check_options", "held_bytes"]
