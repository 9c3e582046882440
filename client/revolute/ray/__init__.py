"""Many workers on Ray behind the API of `revolute.connect`; needs `revolute[ray]`."""

from __future__ import annotations

from .pool import RolloutPool

__all__ = ["RolloutPool"]
