"""Flags, their bounds, and the refusal to listen where others can reach it."""

from __future__ import annotations

import argparse

import pytest

from revolute.contract.errors import ArgumentError
from revolute_server import cli, settings
from revolute_server.settings import Settings, format_bytes, parse_bytes
from revolute_server.store import Limits, open_store


def parse(*flags: str) -> Settings:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    return settings.from_arguments(parser.parse_args(flags))


def test_defaults_listen_on_loopback() -> None:
    found = settings.from_arguments(argparse.Namespace(), {})
    assert (found.host, found.grpc_port, found.http_port) == ("127.0.0.1", 50051, 8000)
    assert found == Settings()


def test_flags_set_what_they_name() -> None:
    found = parse("--threads", "3", "--workers", "2", "--memory", "2GiB", "--max-json", "1M", "--queue", "0")
    assert (found.threads, found.workers, found.memory, found.max_json, found.queue) == (
        3,
        2,
        2 * 1024**3,
        1024**2,
        0,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_other_hosts_need_insecure(host: str) -> None:
    with pytest.raises(ArgumentError, match="--insecure"):
        parse("--host", host)
    assert parse("--host", host, "--insecure").host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "::1", "[::1]"])
def test_loopback_hosts_do_not(host: str) -> None:
    assert parse("--host", host).host == host


@pytest.mark.parametrize(
    "flags",
    [
        ("--threads", "0"),
        ("--workers", "-1"),
        ("--grpc-port", "65536"),
        ("--http-port", "-1"),
        ("--queue", "-1"),
        ("--grace", "nan"),
        ("--log-level", "loud"),
        ("--memory", "0"),
    ],
)
def test_values_out_of_range_are_refused_by_name(flags: tuple[str, str]) -> None:
    with pytest.raises(ArgumentError, match=flags[0].strip("-").replace("-", "_")):
        parse(*flags)


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("4GiB", 4 * 1024**3), ("1.5k", 1536), ("10 MiB", 10 * 1024**2)]
)
def test_sizes(text: str, count: int) -> None:
    assert parse_bytes(text) == count
    assert parse_bytes(format_bytes(count)) == count


@pytest.mark.parametrize("text", ["", "x", "4 elephants", "-1", "nan"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_bytes(text)


def test_a_limit_is_named_as_it_is_typed() -> None:
    assert Settings().flag("max_request") == "--max-request 1GiB"
    assert Settings(max_models=7).flag("max_models") == "--max-models 7"


def test_variables_set_what_flags_do_not() -> None:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    variables = {"REVOLUTE_QUEUE": "7", "REVOLUTE_MAX_JSON": "2MiB", "REVOLUTE_INSECURE": "yes"}
    found = settings.from_arguments(parser.parse_args(["--queue", "9"]), variables)
    assert (found.queue, found.max_json, found.insecure) == (9, 2 * 1024**2, True)
    assert settings.from_arguments(parser.parse_args([]), {"REVOLUTE_QUEUE": ""}) == Settings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("REVOLUTE_QUEUE", "many"),
        ("REVOLUTE_MEMORY", "4 elephants"),
        ("REVOLUTE_INSECURE", "perhaps"),
        ("REVOLUTE_GRPC_PORT", "65536"),
    ],
)
def test_variables_out_of_range_are_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=r"(?i)" + name.removeprefix("REVOLUTE_")):
        settings.from_arguments(argparse.Namespace(), {name: text})


def test_every_setting_is_shown_and_passwords_are_not() -> None:
    shown = Settings(port_file="redis://:hunter2@db:6379/0").shown()
    assert set(shown) == set(Settings.__dataclass_fields__)
    assert shown["max_request"] == "1GiB" and shown["port_file"] == "redis://:***@db:6379/0"


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"tls_cert": "c"}, "tls_key"),
        ({"tls_key": "k"}, "tls_cert"),
        ({"tls_client_ca": "a"}, "tls_cert"),
        ({"no_tcp": True}, "no_tcp"),
        ({"log_format": "xml"}, "log_format"),
        ({"grpc_port": 7000, "http_port": 7000}, "http_port"),
        ({"dm_env_rpc": 8000}, "dm_env_rpc"),
    ],
)
def test_what_does_not_fit_together_is_refused(values: dict[str, object], name: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{name}: expected"):
        Settings(**values)  # type: ignore[arg-type]


def test_ports_may_be_alike_where_none_is_opened_or_each_is_free() -> None:
    Settings(grpc_port=0, http_port=0, dm_env_rpc=0)
    Settings(grpc_port=7000, http_port=7000, no_tcp=True, grpc_socket="s")


def test_the_help_names_every_form_of_a_store() -> None:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    text = " ".join(parser.format_help().split())
    with pytest.raises(ArgumentError) as refused:
        open_store("nowhere", "process", Limits())
    forms = str(refused.value).split("expected ", 1)[1].split(", got ", 1)[0]
    assert forms in text
