"""Checks gradients of trajectories against finite differences, from a whole rollout down to single steps.

- `start`: the default trajectory, and the scale of each input.
- `differences`: directional derivatives of the whole trajectory by differences with many step sizes.
- `single_steps`: the same for single steps, if the whole trajectory is too unstable or switches.
- `opposed`: whether backward and forward derivatives differ by more than rounding.
- `entries`: checks of single entries, with names.
- `one_input`: the complete check of one input; `check` for all inputs.
- `held_bytes`: memory of a check.
"""

from .check import check_gradient, check_options
from .held_bytes import held_bytes

__all__ = ["check_gradient", "check_options", "held_bytes"]
