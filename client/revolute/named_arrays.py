"""Base class of results that are several arrays with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from .contract.arrays import Float64Array


class NamedArrays(Mapping[str, Float64Array]):
    """Arrays as attributes or by key."""

    _arrays: dict[str, Float64Array]
    _advice: ClassVar[str]
    """How to get an array that is not here, for the error text."""

    def __getitem__(self, name: str) -> Float64Array:
        try:
            return self._arrays[name]
        except KeyError:
            raise KeyError(f"{name}: expected one of {', '.join(self._arrays)}") from None

    def __getattr__(self, name: str) -> Float64Array:
        # unpickling asks for attributes before there are arrays
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            return arrays[name]
        raise AttributeError(f"{name}: expected one of {', '.join(arrays)}; {self._advice}")

    def __dir__(self) -> list[str]:
        # for tab completion in notebooks
        return [*super().__dir__(), *self._arrays]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)
