"""What names may be: short enough for a list, and without characters that nobody sees.

Names of models, files and elements are kept, listed, and printed on terminals and pages. Control characters
and those that change the direction of text (Unicode's categories Cc, Cf, Zl and Zp) could make one name look
like another, or move a terminal's cursor. The two joiners that some scripts need are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .errors import ArgumentError

LONGEST_NAME = 256
"""Characters of a model's name and of an element's."""

LONGEST_FILE_NAME = 1024
"""Characters of the name of a file that a model's text refers to, folders included."""

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def fault_of(name: str, longest: int = LONGEST_NAME) -> tuple[str, str] | None:
    """Return what was expected of a name and what it is instead; None for a name that may be kept."""
    if len(name) > longest:
        return f"at most {longest} characters", str(len(name))
    if hidden := _HIDDEN.search(name):
        character = f"U+{ord(hidden[0]):04X} at character {hidden.start()}"
        return "text without control characters and marks of direction", character
    return None


def check_name(argument: str, name: str, longest: int = LONGEST_NAME) -> None:
    """Refuse a name that may not be kept.

    Raises:
        ArgumentError: it is too long, or has a character that is not seen.
    """
    if fault := fault_of(name, longest):
        raise ArgumentError.expected(argument, *fault, advice="choose another name")


def check_file_names(names: Iterable[str]) -> None:
    """Refuse names of a model's files that may not be kept.

    Raises:
        ArgumentError: one is too long, or has a character that is not seen.
    """
    for name in names:
        check_name("assets", name, LONGEST_FILE_NAME)
