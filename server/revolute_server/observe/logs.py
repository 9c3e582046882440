"""Log formats: text for people and JSON for programs. Lines have the id of their call and never a token."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any

from ..access.call import current_call

_log = logging.getLogger("revolute.server")

_SECRETS = re.compile(r"(?i)(?:(bearer\s+)[A-Za-z0-9._~+/=-]{8,}|(revolute_)[A-Za-z0-9_-]{20,})")
"""Tokens: text after "bearer", and revolute_..., which is longer than module names in a stack trace."""

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every log record; further ones come from `extra`."""

_PEER_LEFT = "ExecuteBatchError raised in core by servicer method"
"""Message that grpc logs as an error, with a stack trace, when a client disconnects during its answer."""


def configure(level: str, kind: str) -> None:
    """Send the log of the whole process to stderr.

    Args:
        level: "debug", "info", "warning" or "error".
        kind: "text" or "json".
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else Text())
    handler.addFilter(_is_wanted)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)


def more(level: str) -> None:
    """Log one level more, after "debug" again that of the settings, and say which."""
    levels = ("error", "warning", "info", "debug")
    root = logging.getLogger()
    now = logging.getLevelName(root.level).lower()
    chosen = level if now == "debug" else levels[levels.index(now) + 1]
    root.setLevel(chosen.upper())
    # at a level that is always shown
    _log.error("the log level is %s now", chosen)


def _is_wanted(record: logging.LogRecord) -> bool:
    """Lower grpc's message about a disconnected client to the level "debug"."""
    if not (record.name.startswith("grpc.") and record.getMessage().startswith(_PEER_LEFT)):
        return True
    record.levelno, record.levelname, record.exc_info = logging.DEBUG, "DEBUG", None
    return logging.getLogger().isEnabledFor(logging.DEBUG)


def hide_secrets(text: str) -> str:
    """Return a text with tokens masked."""
    return _SECRETS.sub(r"\1\2***", text)


class Text(logging.Formatter):
    """`time LEVEL logger: message [call id, caller]`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        call = current_call()
        suffix = f" [{call.id} {call.caller.name if call.caller else '-'}]" if call else ""
        return super().formatMessage(record) + suffix

    def format(self, record: logging.LogRecord) -> str:
        return hide_secrets(super().format(record))


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        call = current_call()
        fields: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if call:
            fields["call_id"] = call.id
            fields["caller"] = call.caller.name if call.caller else None
        fields.update({name: value for name, value in vars(record).items() if name not in _PLAIN})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return hide_secrets(json.dumps(fields, default=str))
