"""Arguments that several commands share: where the engine is, which model, and how it is loaded."""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from ..connection import DEFAULT_TIMEOUT, connect
from ..contract.errors import ArgumentError
from ..contract.load_options import OPTIONS
from ..model import ModelHandle
from ..simulator import Simulator


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where the engine is."""
    group = parser.add_argument_group("connection")
    group.add_argument(
        "--address",
        help="grpc://host:port, grpcs://, http://, https://, unix:///path or http+unix:///path "
        "(default: the engine in this process)",
    )
    group.add_argument("--threads", type=int, help="threads of the engine in this process")
    group.add_argument(
        "--token",
        help="bearer token for the server (default: $REVOLUTE_TOKEN, which other users do not see)",
    )
    group.add_argument("--ca", metavar="FILE", help="certificates (PEM) that sign the server's")
    group.add_argument("--cert", metavar="FILE", help="the client's own certificate (PEM)")
    group.add_argument("--key", metavar="FILE", help="private key of --cert")
    group.add_argument(
        "--timeout", type=float, default=DEFAULT_TIMEOUT, help="seconds per call (default: %(default)g)"
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add one flag per option of `load_model`."""
    group = parser.add_argument_group("model options")
    for name, option in OPTIONS.items():
        flag = f"--{name.replace('_', '-')}"
        text = f"{option.text} (default: {option.default_text})"
        if option.kind is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
        else:
            group.add_argument(flag, type=option.kind, help=text)
    group.add_argument(
        "--mesh-path", action="append", default=[], help="further folder to look for meshes in"
    )
    group.add_argument(
        "--package", action="append", default=[], metavar="NAME=FOLDER", help="folder of package://NAME/"
    )


def open_simulator(arguments: argparse.Namespace) -> Simulator:
    """Connect as the arguments say."""
    in_environment = os.environ.get("REVOLUTE_TOKEN") if arguments.address else None
    return connect(
        arguments.address,
        threads=arguments.threads,
        timeout=arguments.timeout,
        token=arguments.token or in_environment,
        ca=arguments.ca,
        cert=arguments.cert,
        key=arguments.key,
    )


def load_model(simulator: Simulator, arguments: argparse.Namespace) -> ModelHandle:
    """Load the model that the arguments name; what it warns of goes to stderr, a line each.

    Raises:
        ArgumentError: a --package without a folder.
    """
    packages = {}
    for entry in arguments.package:
        package, equals, folder = entry.partition("=")
        if not equals or not package or not folder:
            raise ArgumentError.expected("--package", "NAME=FOLDER", repr(entry))
        packages[package] = folder
    options = {name: getattr(arguments, name) for name in OPTIONS}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = simulator.load_model(
            arguments.model, mesh_paths=arguments.mesh_path, package_paths=packages, **options
        )
    for warning in caught:
        print(f"revolute: warning: {warning.message}", file=sys.stderr)
    return model
