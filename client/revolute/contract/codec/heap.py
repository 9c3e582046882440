"""The C library's heap, so that the arrays of each call lie in memory that the process has already."""

from __future__ import annotations

import functools

_LARGEST = 32 * 1024**2 - 64 * 1024
"""Bytes just below the largest block (32 MiB) after which glibc takes such blocks from its heap."""


@functools.cache
def keep_freed_memory() -> None:
    """Have glibc keep freed memory for the next call, as it does once a block of 32 MB was freed.

    As long as it has seen small blocks only, it gives arrays of a megabyte back to the system when they are
    freed, and asks for the same memory, page by page, with the next call: 0.8 MB there and back are 650
    pages, a millisecond. A block that is made and freed here, unused, is all that it needs to learn;
    elsewhere it costs nothing and means nothing. Up to 64 MB that the process does not use may stay with it.
    """
    bytes(_LARGEST)
