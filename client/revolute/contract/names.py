"""Checks names of models, files and elements: limited length, no invisible characters.

Names are stored, listed, and printed on terminals and web pages. Control characters and marks of text
direction (Unicode categories Cc, Cf, Zl and Zp) could make one name look like another, or move a terminal's
cursor. The two joiners that some scripts need (U+200C, U+200D) are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .errors import ArgumentError

LONGEST_NAME = 256
"""Largest number of characters of a model's or element's name."""

LONGEST_FILE_NAME = 1024
"""Largest number of characters of a file's name, folders included."""

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def name_fault(name: str, longest: int = LONGEST_NAME) -> tuple[str, str] | None:
    """Return what was expected and what was found for a bad name, or None for a good one."""
    if len(name) > longest:
        return f"at most {longest} characters", str(len(name))
    if hidden := _HIDDEN.search(name):
        character = f"U+{ord(hidden[0]):04X} at character {hidden.start()}"
        return "text without control characters and marks of direction", character
    return None


def check_name(argument: str, name: str, longest: int = LONGEST_NAME) -> None:
    """Raise an error for a bad name.

    Raises:
        ArgumentError: the name is too long, or contains an invisible character.
    """
    if fault := name_fault(name, longest):
        raise ArgumentError.expected(argument, *fault, advice="choose another name")


def check_file_names(names: Iterable[str]) -> None:
    """Raise an error for a bad name of a model's file.

    Raises:
        ArgumentError: a name is too long, or contains an invisible character.
    """
    for name in names:
        check_name("assets", name, LONGEST_FILE_NAME)
