"""The server's settings: one field, one flag, one line of help.

`Settings` is the only place that knows a default. The command line is derived from its fields, so that a
flag, its help text and the name printed in a limit's error message cannot drift apart.
"""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import os
import re
from collections.abc import Callable
from typing import Any

from revolute.errors import ArgumentError

_UNITS = {"": 1, "B": 1, "K": 1024, "KIB": 1024, "M": 1024**2, "MIB": 1024**2, "G": 1024**3, "GIB": 1024**3}


def parse_bytes(text: str) -> int:
    """Read a byte count such as `4GiB`, `512M` or `1000000`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    unit = _UNITS.get(match.group(2).upper()) if match else None
    if match is None or unit is None:
        raise argparse.ArgumentTypeError(f"expected a size such as 4GiB or 512MiB, got {text!r}")
    return int(float(match.group(1)) * unit)


def format_bytes(count: int) -> str:
    """Write a byte count the way `parse_bytes` reads it."""
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.4g}{unit}"
    return f"{count}B"


def _flag(
    default: Any, text: str, parse: Callable[[str], Any] | None = None, metavar: str | None = None
) -> Any:
    """Declare a setting: its default, its help text and how its flag is read."""
    return dataclasses.field(default=default, metadata={"help": text, "parse": parse, "metavar": metavar})


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that can be set when the server starts."""

    host: str = _flag("127.0.0.1", "address to listen on; anything but loopback needs --insecure")
    grpc_port: int = _flag(50051, "gRPC port; 0 takes a free one", int, "PORT")
    http_port: int = _flag(8000, "HTTP port; 0 takes a free one", int, "PORT")
    insecure: bool = _flag(
        False, "listen on an address other machines can reach, without encryption or login"
    )
    threads: int = _flag(available_cores(), "engine threads of one call (default: one per core)", int, "N")
    workers: int = _flag(
        os.cpu_count() or 1, "engine calls that run at once (default: one per core)", int, "N"
    )
    queue: int = _flag(256, "engine calls that may wait for a worker; more are refused", int, "N")
    max_models: int = _flag(1024, "models kept", int, "N")
    max_sessions: int = _flag(4096, "sessions kept", int, "N")
    max_trajectories: int = _flag(65536, "trajectories kept", int, "N")
    memory: int = _flag(
        4 * 1024**3, "bytes of models, sessions, trajectories and arrays under way", parse_bytes, "SIZE"
    )
    max_request: int = _flag(1024**3, "bytes of one request, however it is streamed", parse_bytes, "SIZE")
    max_json: int = _flag(
        8 * 1024**2, "bytes of one JSON request; larger arrays go as npz", parse_bytes, "SIZE"
    )
    grace: float = _flag(10.0, "seconds that running calls get to finish after SIGTERM", float, "SECONDS")
    port_file: str | None = _flag(None, "write the bound addresses to this file, as JSON", None, "PATH")
    log_level: str = _flag("warning", "debug, info, warning or error", None, "LEVEL")

    def __post_init__(self) -> None:
        for name in (
            "threads",
            "workers",
            "max_models",
            "max_sessions",
            "max_trajectories",
            "memory",
            "max_request",
            "max_json",
        ):
            _require(name, getattr(self, name) >= 1, "a positive number", getattr(self, name))
        for name in ("grpc_port", "http_port"):
            _require(name, 0 <= getattr(self, name) <= 65535, "a port from 0 to 65535", getattr(self, name))
        _require("queue", self.queue >= 0, "zero or a positive number", self.queue)
        _require("grace", 0 <= self.grace < float("inf"), "zero or a positive number of seconds", self.grace)
        _require(
            "log_level",
            self.log_level in ("debug", "info", "warning", "error"),
            "a log level",
            self.log_level,
        )
        if not self.insecure and not is_loopback(self.host):
            raise ArgumentError(
                f"host: expected a loopback address, got {self.host!r}; other machines could reach every "
                "trajectory without login or encryption: pass --insecure if that is meant",
                argument="host",
            )

    def flag(self, name: str) -> str:
        """Name a setting and its value the way a user types them, for messages about limits."""
        value = getattr(self, name)
        parse = self.__dataclass_fields__[name].metadata["parse"]
        return f"--{name.replace('_', '-')} {format_bytes(value) if parse is parse_bytes else value}"


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a listener on `host`."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one flag per setting to a command-line parser."""
    for field in dataclasses.fields(Settings):
        name = "--" + field.name.replace("_", "-")
        text = field.metadata["help"]
        if field.default is False:
            parser.add_argument(name, action="store_true", help=text)
            continue
        parse = field.metadata["parse"]
        default: Any = field.default
        shown = format_bytes(default) if parse is parse_bytes else default
        if "default" not in text and field.default is not None:
            text = f"{text} (default: {shown})"
        parser.add_argument(
            name, type=parse or str, default=field.default, metavar=field.metadata["metavar"], help=text
        )


def from_arguments(arguments: argparse.Namespace) -> Settings:
    """Build the settings from parsed flags.

    Raises:
        ArgumentError: a value is out of range, or the host is not loopback and `--insecure` is not given.
    """
    return Settings(**{field.name: getattr(arguments, field.name) for field in dataclasses.fields(Settings)})


def _require(name: str, holds: bool, expected: str, value: object) -> None:
    if not holds:
        raise ArgumentError(f"{name}: expected {expected}, got {value!r}", argument=name)
