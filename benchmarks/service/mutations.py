"""Damages serialized messages: bits, cuts, repeats, and fields of the wire format moved and swapped."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Parts = list[bytes]

_NUMBERS = (0, 1, 2**7, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)


def mutated(parts: Sequence[bytes], strangers: Sequence[bytes], dice: random.Random) -> Parts:
    """Return the parts of a request with one to three things in them changed.

    Args:
        parts: a valid request.
        strangers: parts of other requests, to take fields from.
        dice: decides.
    """
    damaged = list(parts)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        if not damaged or dice.random() < 0.12:
            damaged = _stream(damaged, strangers, dice)
            continue
        place = dice.randrange(len(damaged))
        change = dice.choice(_CHANGES)
        damaged[place] = change(damaged[place], strangers, dice)
    return damaged


def _stream(parts: Parts, strangers: Sequence[bytes], dice: random.Random) -> Parts:
    """Drop, repeat, swap or add a part."""
    kind = dice.randrange(4)
    place = dice.randrange(len(parts) + 1)
    if kind == 0 and parts:
        del parts[min(place, len(parts) - 1)]
    elif kind == 1 and parts:
        parts.insert(place, dice.choice(parts))
    elif kind == 2 and parts:
        dice.shuffle(parts)
    else:
        parts.insert(place, dice.choice(strangers))
    return parts


def _flip(content: bytes, strangers: Sequence[bytes], dice: random.Random) -> bytes:
    """Flip one to eight bits."""
    damaged = bytearray(content or b"\0")
    for _ in range(dice.choice((1, 1, 2, 8))):
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


def _cut(content: bytes, strangers: Sequence[bytes], dice: random.Random) -> bytes:
    """Keep a beginning or an end."""
    place = dice.randrange(len(content) + 1)
    return content[:place] if dice.random() < 0.7 else content[place:]


def _repeat(content: bytes, strangers: Sequence[bytes], dice: random.Random) -> bytes:
    """Repeat, or take from another message, some bytes in the middle."""
    source = content if dice.random() < 0.5 else dice.choice(strangers)
    begin, place = dice.randrange(len(source) + 1), dice.randrange(len(content) + 1)
    return content[:place] + source[begin : begin + dice.randrange(1, 32)] + content[place:]


def _fields(content: bytes, strangers: Sequence[bytes], dice: random.Random) -> bytes:
    """Drop, double, shuffle or borrow fields, at the top or inside of one that holds a message."""
    fields = _split(content)
    if not fields:
        return _flip(content, strangers, dice)
    place = dice.randrange(len(fields))
    kind = dice.randrange(8)
    if kind == 0:
        del fields[place]
    elif kind == 1:
        fields.insert(dice.randrange(len(fields) + 1), fields[place])
    elif kind == 2:
        dice.shuffle(fields)
    elif kind == 3:
        fields.extend(_split(dice.choice(strangers))[:2])
    else:
        fields[place] = _inside(fields[place], strangers, dice)
    return b"".join(fields)


def _inside(field: bytes, strangers: Sequence[bytes], dice: random.Random) -> bytes:
    """Change the value of one field and keep its length right."""
    tag, place = _varint(field, 0)
    head, kind = field[:place], tag & 7
    if kind == 0:
        return head + _encoded(dice.choice(_NUMBERS))
    if kind != 2:
        return head + dice.randbytes(len(field) - place)
    _, place = _varint(field, place)
    change = dice.choice((_fields, _fields, _fields, _flip, _cut, _repeat))
    value = change(field[place:], strangers, dice)
    return head + _encoded(len(value)) + value


_CHANGES: tuple[Callable[[bytes, Sequence[bytes], random.Random], bytes], ...] = (
    _flip,
    _cut,
    _repeat,
    _fields,
    _fields,
    _fields,
)


def _split(content: bytes) -> Parts:
    """Return the fields of a message as they stand; nothing when it is none."""
    fields, place = [], 0
    try:
        while place < len(content):
            begin = place
            tag, place = _varint(content, place)
            kind = tag & 7
            if kind == 0:
                _, place = _varint(content, place)
            elif kind == 2:
                size, place = _varint(content, place)
                place += size
            elif kind in (1, 5):
                place += 8 if kind == 1 else 4
            else:
                return []
            if place > len(content) or tag >> 3 == 0:
                return []
            fields.append(content[begin:place])
    except IndexError:
        return []
    return fields


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """Return a variable-length number and the place after it."""
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128 or shift > 63:
            return value, place
        shift += 7


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
