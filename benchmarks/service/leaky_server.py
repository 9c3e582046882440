"""A server with a fault planted: each GetServerInfo leaves two kilobytes behind."""

from __future__ import annotations

import sys

from revolute_server.cli import main
from revolute_server.verbs import Verbs

_LEAKED: list[bytes] = []
_honest = Verbs.get_server_info


async def _leaking(self: Verbs) -> dict[str, object]:
    _LEAKED.append(bytes(2048))
    return await _honest(self)


Verbs.get_server_info = _leaking  # type: ignore[method-assign, assignment]

if __name__ == "__main__":
    sys.exit(main())
