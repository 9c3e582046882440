"""Ids of sessions and trajectories."""

from __future__ import annotations

import secrets


def new_id() -> str:
    """Make an id that cannot be guessed: 128 random bits in hexadecimal."""
    return secrets.token_hex(16)
