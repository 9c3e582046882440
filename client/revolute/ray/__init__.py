"""Many workers on Ray: `RolloutPool` behind the API of `revolute.connect`, and RLlib's environments.

Needs `revolute[ray]`; `register_envs` also needs `revolute[gym]` and `ray[rllib]`.
"""

from __future__ import annotations

from .pool import RolloutPool

__all__ = ["RolloutPool", "register_envs"]


def register_envs() -> list[str]:
    """Register the environments of `revolute.gym` with RLlib; see `revolute.ray.environments`."""
    from .environments import register_envs

    return register_envs()
