"""The server's settings: one field, one flag, one environment variable, one line of help.

Only `Settings` has defaults. The command line and the variables `REVOLUTE_*` derive from its fields, so that
flags, help texts and the names in error messages always agree. A flag takes precedence over a variable, a
variable over the default.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import ipaddress
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from revolute.contract.errors import ArgumentError

PREFIX = "REVOLUTE_"
"""Prefix of the environment variables: `--max-request` is REVOLUTE_MAX_REQUEST."""

STORE_FORMS = (
    "sqlite:///PATH (four slashes for a path from the root), "
    "redis://HOST:PORT/DB, rediss://…, unix:///SOCKET?db=0 or memory:"
)
"""Forms of an address in the flag `--store`."""

_OTHER_VARIABLES = tuple(
    PREFIX + name for name in ("ISA", "ADDRESS", "TOKEN", "TOKEN_FILE", "HEALTH_URL", "RANDOM_MODELS")
)
"""Environment variables of the engine, of clients and of other programs, which are not settings."""

_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
_PREFIX_PATH = re.compile(r"(/(?!\.\.?(?:/|$))[A-Za-z0-9._~@:%+-]+)*")
_LONGEST_PREFIX = 500
_UNITS = {"": 1, "B": 1, "K": 1024, "KIB": 1024, "M": 1024**2, "MIB": 1024**2, "G": 1024**3, "GIB": 1024**3}


def parse_bytes(text: str) -> int:
    """Read a byte count such as `4GiB`, `512M` or `1000000`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    unit = _UNITS.get(match.group(2).upper()) if match else None
    if match is None or unit is None:
        raise argparse.ArgumentTypeError(f"expected a size such as 4GiB or 512MiB, got {text!r}")
    return int(float(match.group(1)) * unit)


def format_bytes(count: int) -> str:
    """Return a byte count in a form that `parse_bytes` reads."""
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.4g}{unit}"
    return f"{count}B"


class Bound(NamedTuple):
    """The values that a setting takes: a test, and words for messages."""

    holds: Callable[[Any], bool]
    expected: str


_BOUNDS = {
    "PORT": Bound(lambda port: 0 <= port <= 65535, "a port from 0 to 65535"),
    "N": Bound(lambda count: count >= 1, "a positive number"),
    "SIZE": Bound(lambda size: size >= 1, "a positive number"),
    "SECONDS": Bound(lambda seconds: 0 < seconds < math.inf, "a positive number of seconds"),
}
"""Bounds of numbers by the name of the flag's value."""
_NOT_NEGATIVE = Bound(lambda value: value >= 0, "zero or a positive number")
_RATE = Bound(lambda rate: rate > 0, "a positive number per second")


def _words(*words: str) -> Bound:
    """Return the bound of a setting that is one of a few words."""
    return Bound(lambda word: word in words, f"{', '.join(words[:-1])} or {words[-1]}")


def _flag(
    default: Any,
    text: str,
    parse: Callable[[str], Any] | None = None,
    metavar: str | None = None,
    bound: Bound | None = None,
) -> Any:
    """Declare a setting: its default, its help text, the parser of its flag, and its bound.

    A setting whose default is None takes None, too. Without `bound`, numbers have that of `_BOUNDS`.
    """
    bound = bound or _BOUNDS.get(metavar or "")
    metadata = {"help": text, "parse": parse, "metavar": metavar, "bound": bound}
    return dataclasses.field(default=default, metadata=metadata)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a server; each field is a flag, with the help text as its description."""

    host: str = _flag(
        "127.0.0.1",
        "address to listen on; an address that other machines can reach needs TLS, tokens or --insecure",
    )
    grpc_port: int = _flag(50051, "gRPC port; 0 chooses a free one", int, "PORT")
    http_port: int = _flag(8000, "HTTP port; 0 chooses a free one", int, "PORT")
    dm_env_rpc: int | None = _flag(
        None, "port for dm_env_rpc agents (needs the extra dm-env-rpc); 0 chooses a free one", int, "PORT"
    )
    grpc_socket: str | None = _flag(None, "also serve gRPC on this Unix socket", None, "PATH")
    http_socket: str | None = _flag(None, "also serve HTTP on this Unix socket", None, "PATH")
    no_tcp: bool = _flag(False, "listen on the Unix sockets only")
    no_shared_memory: bool = _flag(
        False,
        "send all arrays over the connection, even to clients on this machine",
    )
    tls_cert: str | None = _flag(None, "certificate chain (PEM) for both ports", None, "FILE")
    tls_key: str | None = _flag(None, "private key (PEM) of the certificate", None, "FILE")
    tls_client_ca: str | None = _flag(
        None, "certificate authorities (PEM) that sign client certificates (mutual TLS)", None, "FILE"
    )
    tokens: str | None = _flag(
        None,
        "file of name:role:sha256 lines; every call then needs a token from `revolute token new`",
        None,
        "FILE",
    )
    insecure: bool = _flag(False, "allow other machines to connect without encryption or login")
    threads: int = _flag(available_cores(), "engine threads per call (default: one per core)", int, "N")
    workers: int = _flag(
        os.cpu_count() or 1, "engine calls that run at the same time (default: one per core)", int, "N"
    )
    queue: int = _flag(
        256, "engine calls that may wait for a worker; further calls are refused", int, "N", _NOT_NEGATIVE
    )
    batch_delay: float = _flag(
        0.05,
        "longest time that a call waits for other calls to join its batch; 0 turns batching off",
        float,
        "SECONDS",
        Bound(lambda delay: 0 <= delay <= 1, "0 to 1 s"),
    )
    batch_size: int = _flag(64, "environments per batch of merged calls", int, "N")
    engine_nice: int = _flag(
        5,
        "nice value of engine threads, 0 to 19, so that answers go first (Linux)",
        int,
        "N",
        Bound(lambda nice: 0 <= nice <= 19, "0 to 19"),
    )
    max_client_calls: int | None = _flag(
        None, "concurrent engine calls per client (default: no limit)", int, "N"
    )
    max_client_rate: float | None = _flag(
        None,
        "calls of a client per second, unless its token says otherwise (default: no limit)",
        float,
        "N",
        _RATE,
    )
    max_client_steps: float | None = _flag(
        None,
        "steps per second that the engine takes for a client, summed over environments, unless its token "
        "says otherwise (default: no limit)",
        float,
        "N",
        _RATE,
    )
    max_client_sessions: int | None = _flag(None, "sessions per client (default: no limit)", int, "N")
    max_client_memory: int | None = _flag(
        None,
        "memory for sessions, trajectories and arrays per client (default: no limit)",
        parse_bytes,
        "SIZE",
    )
    max_models: int = _flag(1024, "number of models that are stored", int, "N")
    max_sessions: int = _flag(4096, "number of sessions that are stored", int, "N")
    max_trajectories: int = _flag(65536, "number of trajectories that are stored", int, "N")
    store: str | None = _flag(
        None,
        f"where data is stored: {STORE_FORMS} (default: revolute/store.db in the user's state folder)",
        None,
        "ADDRESS",
    )
    durability: str = _flag(
        "process",
        "process: stored data survives a crash of the server; disk: also a crash of the machine",
        bound=_words("process", "disk"),
    )
    store_bytes: int = _flag(64 * 1024**3, "size of the store", parse_bytes, "SIZE")
    trajectory_ttl: float = _flag(
        7 * 86400.0, "lifetime of a trajectory after its last use", float, "SECONDS"
    )
    lease: float = _flag(3600.0, "lifetime of a session after its last use", float, "SECONDS")
    max_lease: float = _flag(7 * 86400.0, "longest lease that a client may ask for", float, "SECONDS")
    request_ttl: float = _flag(
        86400.0, "time for which the server remembers a request id and its answer", float, "SECONDS"
    )
    max_requests: int = _flag(
        200_000, "number of remembered request ids; the oldest are forgotten first", int, "N"
    )
    request_bytes: int = _flag(
        1024**3,
        "size of the remembered answers; with --store memory: at most an eighth of --memory",
        parse_bytes,
        "SIZE",
    )
    memory: int = _flag(
        4 * 1024**3, "memory for models, sessions, trajectories and running calls", parse_bytes, "SIZE"
    )
    max_request: int = _flag(1024**3, "size of one request, streamed or not", parse_bytes, "SIZE")
    max_json: int = _flag(
        8 * 1024**2,
        "size of one JSON request, and of the arrays in a JSON answer; use NPZ for larger ones",
        parse_bytes,
        "SIZE",
    )
    max_model: int = _flag(
        16 * 1024**2, "size of a model's text, or of one included file", parse_bytes, "SIZE"
    )
    max_mesh: int = _flag(64 * 1024**2, "size of one mesh file", parse_bytes, "SIZE")
    max_batch: int = _flag(65536, "environments per session or call", int, "N")
    compilers: int = _flag(
        4, "models compiled at the same time, each in its own process; others wait", int, "N"
    )
    compile_time: float = _flag(60.0, "time limit for compiling one model", float, "SECONDS")
    compile_memory: int = _flag(
        1024**3, "memory limit for compiling one model; part of --memory", parse_bytes, "SIZE"
    )
    max_entries: int = _flag(
        20_000,
        "entries of lists and maps in one gRPC request; a hundred numbers count as one",
        int,
        "N",
    )
    max_connections: int = _flag(
        1024, "connections per transport; fewer if the process may open only few files", int, "N"
    )
    max_streams: int = _flag(
        256, "concurrent calls per gRPC connection; a client keeps others waiting", int, "N"
    )
    header_timeout: float = _flag(
        10.0,
        "time limit for the handshake of a connection, and for the header of an HTTP request",
        float,
        "SECONDS",
    )
    body_timeout: float = _flag(
        30.0, "time without further bytes of a request before the server gives it up", float, "SECONDS"
    )
    min_body_rate: int = _flag(
        1024,
        "lowest average rate in bytes per second of an HTTP request, checked after --body-timeout",
        parse_bytes,
        "SIZE",
        _NOT_NEGATIVE,
    )
    answer_timeout: float = _flag(
        300.0,
        "seconds in which a client takes no more of an answer, after which it is given up",
        float,
        "SECONDS",
    )
    idle_timeout: float = _flag(
        300.0, "time without a request before the server closes a connection", float, "SECONDS"
    )
    max_header: int = _flag(64 * 1024, "size of the header of an HTTP request", parse_bytes, "SIZE")
    max_url: int = _flag(8 * 1024, "size of the URL of an HTTP request", parse_bytes, "SIZE")
    max_header_fields: int = _flag(128, "header fields of an HTTP request", int, "N")
    max_npz_arrays: int = _flag(4096, "arrays in one NPZ request", int, "N")
    max_json_keys: int = _flag(10_000, "keys in one JSON request", int, "N")
    max_json_depth: int = _flag(32, "nesting depth of one JSON request", int, "N")
    max_json_values: int = _flag(250_000, "values in one JSON request; numbers are not counted", int, "N")
    root_path: str = _flag(
        "", "path under which a proxy serves the HTTP pages, such as /robots/revolute", None, "PATH"
    )
    trusted_proxies: str = _flag(
        "",
        "comma-separated addresses or networks of proxies whose X-Forwarded-… headers are trusted",
        None,
        "ADDRESSES",
    )
    grace: float = _flag(
        10.0,
        "longest time from SIGTERM to the end of the server",
        float,
        "SECONDS",
        Bound(lambda seconds: 0 <= seconds < math.inf, "zero or a positive number of seconds"),
    )
    otlp_endpoint: str | None = _flag(
        None, "send traces to this OpenTelemetry collector, e.g. http://127.0.0.1:4318", None, "URL"
    )
    port_file: str | None = _flag(None, "write the addresses in use to this file, as JSON", None, "PATH")
    log_level: str = _flag(
        "warning",
        "debug, info (one line per call), warning or error",
        None,
        "LEVEL",
        _words("debug", "info", "warning", "error"),
    )
    log_format: str = _flag(
        "text", "text, or json for one JSON object per line", None, "FORMAT", _words("text", "json")
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, bound = getattr(self, field.name), field.metadata["bound"]
            if bound is not None and not (value is None and field.default is None):
                _require(field.name, bound.holds(value), bound.expected, value)
        _require(
            "lease", self.lease <= self.max_lease, f"at most max_lease, {self.max_lease:g} s", self.lease
        )
        self._check_ports()
        self._check_security()
        self._check_proxies()

    def _check_ports(self) -> None:
        """Refuse the same port for two protocols."""
        taken: dict[int, str] = {}
        for name in () if self.no_tcp else ("grpc_port", "http_port", "dm_env_rpc"):
            port = getattr(self, name)
            if port and port in taken:
                raise ArgumentError.expected(name, f"another port than {taken[port]}", port)
            taken[port] = name

    def _check_security(self) -> None:
        """Refuse incomplete TLS settings, and access from other machines without login or `insecure`."""
        for name, needed in (("tls_cert", "tls_key"), ("tls_key", "tls_cert"), ("tls_client_ca", "tls_cert")):
            if getattr(self, name) and not getattr(self, needed):
                raise ArgumentError.expected(needed, f"a file beside {name}", "none")
        if self.no_tcp and not (self.grpc_socket or self.http_socket):
            raise ArgumentError.expected("no_tcp", "grpc_socket or http_socket beside it", "neither")
        protected = self.tls_cert or self.tokens
        if not (protected or self.insecure or self.no_tcp or is_loopback(self.host)):
            raise ArgumentError(
                f"host: expected a loopback address, got {self.host!r}; other machines could reach every "
                "trajectory without login or encryption: pass --tokens or --tls-cert, or --insecure if that "
                "is meant",
                argument="host",
            )

    def _check_proxies(self) -> None:
        """Refuse a malformed path prefix, and proxies that are not addresses or networks."""
        _require("root_path", is_prefix(self.root_path), "a path such as /robots/revolute", self.root_path)
        for network in self.proxies:
            try:
                ipaddress.ip_network(network)
            except ValueError:
                raise ArgumentError.expected(
                    "trusted_proxies", "addresses or networks such as 10.0.0.0/8", repr(network)
                ) from None

    @property
    def proxies(self) -> list[str]:
        """Addresses and networks of the trusted proxies."""
        return [network.strip() for network in self.trusted_proxies.split(",") if network.strip()]

    @property
    def checks_host_names(self) -> bool:
        """Whether the Host header of HTTP requests must be a loopback name; see `http.loopback_hosts`."""
        return not (self.insecure or self.tokens) and is_loopback(self.host)

    def shown(self) -> dict[str, Any]:
        """Return all settings by name for printing: sizes with units, passwords in URLs hidden."""
        return {field.name: self._shown(field) for field in dataclasses.fields(self)}

    def _shown(self, field: dataclasses.Field[Any]) -> Any:
        value = getattr(self, field.name)
        if field.metadata["parse"] is parse_bytes and value is not None:
            return format_bytes(value)
        return hide_password(value) if isinstance(value, str) else value

    def flag(self, name: str) -> str:
        """Return a setting as a user types it, "--name value", for messages about limits."""
        value = getattr(self, name)
        parse = self.__dataclass_fields__[name].metadata["parse"]
        return f"--{name.replace('_', '-')} {format_bytes(value) if parse is parse_bytes else value}"


def is_prefix(path: str) -> bool:
    """Tell whether a text is a path prefix: empty, or `/a/b` without a trailing slash."""
    return len(path) <= _LONGEST_PREFIX and _PREFIX_PATH.fullmatch(path) is not None


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a listener on `host`."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def hide_password(text: str) -> str:
    """Return a URL with its password masked; return other texts unchanged."""
    try:
        parts = urlsplit(text)
        if not parts.password:
            return text
    except ValueError:
        return text
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{host}"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one flag per setting to a command-line parser."""
    for field in dataclasses.fields(Settings):
        name = "--" + field.name.replace("_", "-")
        text = field.metadata["help"]
        if field.default is False:
            parser.add_argument(name, action="store_true", default=argparse.SUPPRESS, help=text)
            continue
        parse = field.metadata["parse"]
        default: Any = field.default
        shown = format_bytes(default) if parse is parse_bytes and default is not None else default
        if "default" not in text and field.default is not None:
            text = f"{text} (default: {shown})"
        parser.add_argument(
            name, type=parse or str, default=argparse.SUPPRESS, metavar=field.metadata["metavar"], help=text
        )
    parser.epilog = (
        f"Each flag may be given as a variable as well: --max-request as {PREFIX}MAX_REQUEST. Flags win."
    )


def from_arguments(arguments: argparse.Namespace, environment: Mapping[str, str] | None = None) -> Settings:
    """Build the settings from parsed flags and variables.

    Args:
        arguments: the given flags of `add_arguments`.
        environment: variables by name; by default those of the process.

    Raises:
        ArgumentError: a value is malformed or out of range, or other machines could reach the server without
            login.
    """
    chosen = _from_environment(os.environ if environment is None else environment)
    names = [field.name for field in dataclasses.fields(Settings)]
    chosen.update({name: value for name, value in vars(arguments).items() if name in names})
    if "lease" not in chosen and chosen.get("max_lease", Settings.lease) < Settings.lease:
        # lower the default lease to the chosen maximum
        chosen["lease"] = chosen["max_lease"]
    return Settings(**chosen)


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return a warning for each variable that starts with PREFIX but is not a setting."""
    known = [PREFIX + field.name.upper() for field in dataclasses.fields(Settings)]
    found = []
    for name in sorted(os.environ if environment is None else environment):
        if name.startswith(PREFIX) and name not in (*known, *_OTHER_VARIABLES):
            close = difflib.get_close_matches(name, known, 1)
            advice = f"did you mean {close[0]}?" if close else "`revolute serve --help` lists the settings"
            found.append(f"{name}: expected the variable of a setting, got an unknown one; {advice}")
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Read the settings in environment variables; an empty variable counts as not set."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(Settings):
        name = PREFIX + field.name.upper()
        text = environment.get(name, "")
        if not text:
            continue
        parse = _parse_flag if field.default is False else field.metadata["parse"] or str
        try:
            found[field.name] = parse(text)
        except (argparse.ArgumentTypeError, ValueError) as error:
            reason = (
                str(error)
                if isinstance(error, argparse.ArgumentTypeError)
                else f"expected a number, got {text!r}"
            )
            raise ArgumentError(f"{name}: {reason}", argument=field.name) from None
    return found


def _parse_flag(text: str) -> bool:
    if text.lower() not in _WORDS:
        raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")
    return _WORDS[text.lower()]


def _require(name: str, holds: bool, expected: str, value: object) -> None:
    if not holds:
        raise ArgumentError(f"{name}: expected {expected}, got {value!r}", argument=name)
