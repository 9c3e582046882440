"""Bearer tokens and the permissions of their roles.

A token file has one line per token, `name:role:sha256`, with the hash in hexadecimal. Behind it may stand, in
any order, the last day (UTC) on which the token is valid, `:2030-12-31`, and what its holder may do per
second, `:calls=20` and `:steps=1e6` (`rates.py`). Tokens are random (`revolute token new`), are not stored,
and are compared by hash in constant time. The file is read again when it has changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import logging
import math
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path

from revolute.contract.errors import ArgumentError, PermissionDeniedError, UnauthenticatedError
from revolute.contract.verbs import VERBS

from .caller import ANONYMOUS, Caller, Role

_log = logging.getLogger("revolute.server")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_PREFIX = "revolute_"

HEALTH, METRICS, STATUS = "Health", "Metrics", "Status"
"""Verbs that are not rpcs: /livez and /readyz (open to everybody), /metrics, and the admin page's /status."""

_ENVIRONMENT = (
    "Environment.Process",
    "Environment.create_world",
    "Environment.join_world",
    "Environment.step",
    "Environment.reset",
    "Environment.reset_world",
    "Environment.leave_world",
    "Environment.destroy_world",
)

ROLES: dict[str, Role] = {
    **{verb.rpc: Role(verb.role) for verb in VERBS.values()},
    **dict.fromkeys(_ENVIRONMENT, Role.RUN),
    METRICS: Role.READ,
    STATUS: Role.ADMIN,
}
"""Role that each verb needs, by `Service.Rpc`. A verb that is missing here needs an admin."""


@dataclass(frozen=True)
class Token:
    """One line of a token file."""

    caller: Caller
    sha256: bytes
    last_day: date | None = None

    @property
    def has_expired(self) -> bool:
        """Whether its last day is over."""
        return self.last_day is not None and datetime.now(timezone.utc).date() > self.last_day


class TokenFile:
    """The tokens of a file, reloaded when the file changes.

    Raises:
        ArgumentError: the file cannot be read, or a line is malformed.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._seen = self._stamp()
        self._tokens = _read(self._path)

    def find(self, token: str) -> Token | None:
        """Return the line of a token; None if the token is not in the file."""
        self._refresh()
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for entry in self._tokens:
            # compare all, so that the time does not reveal which one matched
            if hmac.compare_digest(entry.sha256, digest):
                found = entry
        return found

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        self.reload()

    def reload(self) -> None:
        """Read the file again; if it is broken, the old tokens stay valid."""
        try:
            self._tokens = _read(self._path)
            _log.info("tokens: read %s again, it has %d", self._path, len(self._tokens))
        except ArgumentError as error:
            _log.error("%s; the tokens stay as they were", error)

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = os.stat(self._path)
        except OSError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_size, status.st_ino)


class Access:
    """Checks the token and the role of calls.

    Args:
        tokens: the valid tokens; None admits everybody.
    """

    def __init__(self, tokens: TokenFile | None) -> None:
        self._tokens = tokens

    def admit(self, verb: str, authorization: str | None) -> Caller:
        """Return the caller if their role allows the verb.

        Args:
            verb: a key of `ROLES`.
            authorization: value of the header or metadata `authorization`.

        Raises:
            UnauthenticatedError: the token is missing or unknown.
            PermissionDeniedError: the role does not allow the verb.
        """
        caller = self._identify(authorization)
        needed = ROLES.get(verb, Role.ADMIN)
        if caller.role < needed:
            raise PermissionDeniedError(
                f"token: expected the role {needed.name.lower()} for {verb}, "
                f"got {caller.role.name.lower()}; ask for a token with that role",
                argument="token",
            )
        return caller

    def _identify(self, authorization: str | None) -> Caller:
        if self._tokens is None:
            return ANONYMOUS
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            got = "none" if not authorization else "another kind of authorization"
            raise UnauthenticatedError.expected(
                "token", "a bearer token", got, advice="pass token=... to revolute.connect"
            )
        found = self._tokens.find(token.strip())
        if found is None or found.has_expired:
            got = (
                "one that it does not know" if found is None else f"one that was valid until {found.last_day}"
            )
            raise UnauthenticatedError.expected(
                "token", "a token of this server", got, advice="ask for a new one"
            )
        return found.caller


def new_token() -> str:
    """Make a token: 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(32)


def token_line(
    name: str,
    role: str,
    token: str,
    last_day: str | None = None,
    rates: Mapping[str, str] | None = None,
) -> str:
    """Return the line of a token for the token file.

    Args:
        name: name of its holder.
        role: what it may do.
        token: the token.
        last_day: last day (UTC) on which it is valid.
        rates: "calls" and "steps" per second, instead of the server's defaults.

    Raises:
        ArgumentError: the name, the role, the day or a rate is invalid.
    """
    digest = hashlib.sha256(token.encode()).hexdigest()
    end = "" if last_day is None else f":{_day(last_day, None)}"
    for key, text in (rates or {}).items():
        end += f":{key}={_rate(key, text, None):.12g}"
    return f"{_name(name, None)}:{_role(role, None).name.lower()}:{digest}{end}"


def add_token(path: Path, name: str, role: str, line: str) -> None:
    """Add the line of a token to a file; a new file is readable for its owner only.

    Args:
        path: the file.
        name: name of its holder.
        role: what it may do.
        line: what `token_line` returns.

    Raises:
        ArgumentError: the role is invalid, the file has the name with another role, or a line of
            the file is malformed; the file is not changed.
        OSError: the file cannot be written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        # serialise concurrent commands
        fcntl.flock(file, fcntl.LOCK_EX)
        known = {entry.caller.name: entry.caller.role for entry in _read(path)}
        if known.get(name, _role(role, None)) != _role(role, None):
            raise ArgumentError.expected(
                "role",
                f"{known[name].name.lower()}, which {name!r} has in {path}",
                role,
                advice="a name has one role: choose another name, or remove the name's other lines first",
            )
        text = file.read()
        file.write(("" if not text or text.endswith("\n") else "\n") + line + "\n")


def _read(path: Path) -> list[Token]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or "a file that is no text"
        raise ArgumentError.expected("tokens", f"a file that can be read at {path}", found) from None
    tokens = [
        _parse(line.strip(), f"{path} line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    names = [token.caller.name for token in tokens]
    for name in set(names):
        roles = {token.caller.role for token in tokens if token.caller.name == name}
        if len(roles) > 1:
            raise ArgumentError.expected("tokens", f"one role for {name!r}", f"{len(roles)}", at=str(path))
    return tokens


def _parse(line: str, where: str) -> Token:
    fields = line.split(":")
    if not 3 <= len(fields) <= 6:
        # do not show the line: it may contain a token
        expected = "name:role:sha256, with :date, :calls=N and :steps=N at most"
        raise ArgumentError.expected("tokens", expected, f"{len(fields)} fields", at=where)
    name, role, digest, *rest = (field.strip() for field in fields)
    if not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
        raise ArgumentError.expected(
            "tokens",
            "a SHA-256 of 64 hexadecimal digits",
            f"{len(digest)} characters",
            at=where,
            advice="`revolute token new` makes a token and its line",
        )
    last_day, rates = None, {}
    for field in rest:
        key, is_rate, text = field.partition("=")
        if is_rate:
            rates[key] = _rate(key, text, where)
        else:
            last_day = _day(field, where)
    caller = Caller(_name(name, where), _role(role, where), rates.get("calls"), rates.get("steps"))
    return Token(caller, bytes.fromhex(digest), last_day)


def _rate(key: str, text: str, where: str | None) -> float:
    if key not in ("calls", "steps"):
        raise ArgumentError.expected("tokens", "calls=N or steps=N", repr(f"{key[:20]}=…"), at=where)
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not rate > 0:
        raise ArgumentError.expected(key, "a positive number per second", repr(text[:20]), at=where)
    return rate


def _day(text: str, where: str | None) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentError.expected(
            "expires", "a day such as 2030-12-31", repr(text[:80]), at=where
        ) from None


def _name(name: str, where: str | None) -> str:
    if not _NAME.fullmatch(name) or name == ANONYMOUS.name:
        raise ArgumentError.expected("name", "1 to 64 letters, digits and ._@-", repr(name[:80]), at=where)
    return name


def _role(role: str, where: str | None) -> Role:
    if role.upper() not in Role.__members__:
        raise ArgumentError.expected("role", "read, run or admin", repr(role[:80]), at=where)
    return Role[role.upper()]
