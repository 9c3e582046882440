"""The options of `load_model`, checked and with defaults filled in."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from revolute.contract.errors import ArgumentError
from revolute.contract.load_options import OPTIONS, LoadOptions, Option


def checked_options(given: Mapping[str, Any]) -> LoadOptions:
    """Return the options in plain Python types.

    Raises:
        ArgumentError: an option has the wrong type, lies outside its range, or is set for another contact
            model.
    """
    options = LoadOptions(**{name: _checked(name, OPTIONS[name], value) for name, value in given.items()})
    for name, option in OPTIONS.items():
        _check_contact_model(name, option, getattr(options, name), options.contact_model)
    return options


def engine_values(options: LoadOptions) -> dict[str, int | float]:
    """Return the options that the compiled engine reads, as numbers; the file decides those that are None."""
    values = {name: getattr(options, name) for name, option in OPTIONS.items() if not option.edits_file}
    return {name: _number(OPTIONS[name], value) for name, value in values.items() if value is not None}


def positive_integer(name: str, value: Any, most: int) -> int:
    """Return `value` as an int when it is an integer from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= int(value) <= most:
        raise ArgumentError.expected(name, f"an integer from 1 to {most}", repr(value))
    return int(value)


def _checked(name: str, option: Option, value: Any) -> Any:
    """Return an option's value as `option.kind`."""
    if value is None and option.default is None:
        return None
    if not _accepts(option, value):
        raise ArgumentError.expected(name, option.expected, repr(value))
    return option.kind(value)


def _check_contact_model(name: str, option: Option, value: Any, contact_model: str) -> None:
    """Refuse a value other than the default if the contact model does not read the option."""
    if option.contact_model in ("", contact_model) or value == option.default:
        return
    raise ArgumentError.expected(
        name,
        f'contact_model="{option.contact_model}", the only one that reads it',
        f'"{contact_model}"',
        advice=f'pass contact_model="{option.contact_model}" or leave {name} out',
    )


def _accepts(option: Option, value: Any) -> bool:
    """Tell whether a value has the option's type and lies within its bounds."""
    if option.kind is str:
        return value in option.choices
    is_switch = isinstance(value, (bool, np.bool_))
    if option.kind is bool or is_switch:
        return option.kind is bool and is_switch
    if not isinstance(value, numbers.Integral if option.kind is int else numbers.Real):
        return False
    number: Any = value
    high_enough = number > option.least if option.above else number >= option.least
    return math.isfinite(number) and high_enough and number <= option.most


def _number(option: Option, value: Any) -> int | float:
    """Return an option's value as the compiled engine reads it."""
    if option.kind is str:
        return option.choices.index(value)
    return int(value) if option.kind is bool else value
