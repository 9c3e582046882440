"""`revolute token new`: makes a token and its line for the server's token file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path

from revolute.contract.errors import ArgumentError, RevoluteError

from .tokens import add_token, new_token, token_line


def main(argv: Sequence[str] | None = None) -> int:
    """Make a token; it is printed once and not stored.

    Returns:
        Exit status: 0, or 2 if an argument is invalid or conflicts with the token file.
    """
    parser = argparse.ArgumentParser(prog="revolute token", description="Make tokens for `revolute serve`.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    new = commands.add_parser("new", help="make a token", description="Print a new token, once.")
    new.add_argument("--name", required=True, help="its holder; logs and quotas use this name")
    new.add_argument("--role", required=True, choices=("read", "run", "admin"), help="what it may do")
    new.add_argument("--expires", metavar="DATE", help="last day (UTC) on which it is valid, e.g. 2030-12-31")
    new.add_argument(
        "--calls", metavar="N", help="calls per second, instead of the server's --max-client-rate"
    )
    new.add_argument("--steps", metavar="N", help="steps per second, instead of --max-client-steps")
    new.add_argument("--tokens", metavar="FILE", help="add its line to this token file; printed otherwise")
    arguments = parser.parse_args(argv)
    token = new_token()
    try:
        given = {"calls": arguments.calls, "steps": arguments.steps}
        rates = {name: text for name, text in given.items() if text is not None}
        line = token_line(arguments.name, arguments.role, token, arguments.expires, rates)
        today = datetime.now(timezone.utc).date()
        if arguments.expires and date.fromisoformat(arguments.expires) < today:
            raise ArgumentError.expected("expires", "a day from today on", arguments.expires)
        if arguments.tokens:
            add_token(Path(arguments.tokens), arguments.name, arguments.role, line)
    except RevoluteError as error:
        print(f"revolute token: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"revolute token: tokens: expected a file to write, got {error}", file=sys.stderr)
        return 2
    if arguments.tokens:
        print(
            f"the token of {arguments.name} is known to servers with --tokens {arguments.tokens}",
            file=sys.stderr,
        )
    else:
        print(f"line for the file of --tokens:\n{line}\ntoken:", file=sys.stderr)
    print(token)
    return 0
