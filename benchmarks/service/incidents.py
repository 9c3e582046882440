"""The faults that a server wrote into its log, each with its stack."""

from __future__ import annotations

import re

_BEGIN = re.compile(r"^\S+ \S+ ERROR revolute\.server: incident (\w+) in .*$", re.MULTILINE)
_NEXT = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ ", re.MULTILINE)


def incidents(log: str) -> list[str]:
    """Return the incidents of a log of `--log-format text`, each from its id to the end of its stack.

    Args:
        log: what the server printed.
    """
    found = []
    for begin in _BEGIN.finditer(log):
        following = _NEXT.search(log, begin.end())
        found.append(log[begin.start() : following.start() if following else len(log)].rstrip())
    return found
