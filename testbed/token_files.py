"""Token files for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from revolute_server.access.tokens import new_token, token_line


def write_tokens(path: Path, roles: Mapping[str, str]) -> dict[str, str]:
    """Write a token file with one token for each name, and return the tokens by name."""
    tokens = {name: new_token() for name in roles}
    path.write_text("".join(f"{token_line(name, roles[name], tokens[name])}\n" for name in roles))
    return tokens
