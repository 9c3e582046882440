"""Whole numbers in protobuf's wire format: seven bits per byte, the lowest first."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Write a whole number of at least 0."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(content: bytes | memoryview, place: int) -> tuple[int | None, int]:
    """Return the whole number at a place and the place after it; None if there is none."""
    number = 0
    for position in range(10):
        if place + position >= len(content):
            break
        byte = content[place + position]
        number |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return number, place + position + 1
    return None, place
