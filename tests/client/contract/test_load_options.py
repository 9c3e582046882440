"""The table of load options: the protocol, `load_model` and type checkers have the same ones."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Literal, get_type_hints

import pytest
from google.protobuf.descriptor import FieldDescriptor

from revolute import Simulator
from revolute.contract.load_options import OPTIONS, GivenOptions, LoadOptions
from revolute.contract.v1 import model_pb2

WIRE_TYPES = {
    str: FieldDescriptor.CPPTYPE_STRING,
    bool: FieldDescriptor.CPPTYPE_BOOL,
    int: FieldDescriptor.CPPTYPE_INT32,
    float: FieldDescriptor.CPPTYPE_DOUBLE,
}


def test_the_protocol_has_each_option_with_its_type() -> None:
    fields = model_pb2.ModelOptions.DESCRIPTOR.fields
    assert {field.name: field.cpp_type for field in fields} == {
        name: WIRE_TYPES[option.kind] for name, option in OPTIONS.items()
    }
    assert all(field.has_presence for field in fields)


def test_type_checkers_see_each_option_with_its_type() -> None:
    given, table = get_type_hints(GivenOptions), get_type_hints(LoadOptions)
    assert list(given) == list(table) == list(OPTIONS)
    for name, option in OPTIONS.items():
        kind = Literal[option.choices] if option.choices else option.kind
        assert given[name] == kind | None
        assert table[name] == (option.kind | None if option.default is None else option.kind)


def test_the_signature_shows_each_option_with_its_default() -> None:
    parameters = inspect.signature(Simulator.load_model).parameters
    for field in dataclasses.fields(LoadOptions):
        assert parameters[field.name].default == field.default
        assert parameters[field.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert f"\n            {field.name}: " in (Simulator.load_model.__doc__ or "")
    assert "options" not in parameters


@pytest.mark.parametrize("name", OPTIONS)
def test_a_default_is_among_the_values_that_the_option_takes(name: str) -> None:
    option = OPTIONS[name]
    assert bool(option.choices) is (option.kind is str)
    if option.choices:
        assert option.default in (None, *option.choices)
    elif option.default is not None:
        assert type(option.default) is option.kind
        assert option.least <= option.default <= option.most
