"""Names that are kept and listed are bounded, alike in process, over gRPC and over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

import revolute
from revolute.contract.names import LONGEST_FILE_NAME, LONGEST_NAME
from revolute.simulator import Simulator

TEXT = """<mujoco model="{model}"><worldbody><body name="{body}"><joint name="{joint}"/>
<geom name="{geom}" size="0.1"/></body></worldbody>
<actuator><motor name="{actuator}" joint="{joint}"/></actuator>
<keyframe><key name="{key}" qpos="0"/></keyframe></mujoco>"""
ELEMENTS = ("model", "body", "joint", "geom", "actuator", "key")
HIDDEN = {
    "escape": "a\x1b[2J",
    "override": "a\u202egpj",
    "isolate": "a\u2066b",
    "mark": "a\u200fb",
    "next": "a\x85b",
}
PLAIN = ("größe", "机器人", "\u0645\u06cc\u200c\u062e", "\U0001f469\u200d\U0001f680", "a b/c-d.e_f:g")


def model_text(**names: str) -> str:
    return TEXT.format(**{**{name: name for name in ELEMENTS}, **names})


def errors(simulators: dict[str, Simulator], *arguments: Any, **options: Any) -> tuple[type, str]:
    """Return the class and text of the error, the same for all simulators."""
    found = set()
    for simulator in simulators.values():
        with pytest.raises(revolute.RevoluteError) as caught:
            simulator.load_model(*arguments, **options)
        found.add((type(caught.value), str(caught.value)))
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("word", HIDDEN.values(), ids=HIDDEN)
def test_a_name_has_no_hidden_characters(simulators: dict[str, Simulator], word: str) -> None:
    kind, text = errors(simulators, model_text(), name=word)
    assert kind is revolute.ArgumentError
    assert text == (
        "name: expected text without control characters and marks of direction, "
        f"got U+{ord(word[1]):04X} at character 1; choose another name"
    )
    kind, text = errors(simulators, model_text(), assets={f"{word}.stl": b""})
    assert kind is revolute.ArgumentError and text.startswith("assets: expected text without control")


def test_a_name_has_a_length(simulators: dict[str, Simulator]) -> None:
    kind, text = errors(simulators, model_text(), name="x" * (LONGEST_NAME + 1))
    assert (kind, text) == (
        revolute.ArgumentError,
        "name: expected at most 256 characters, got 257; choose another name",
    )
    kind, text = errors(simulators, model_text(), assets={"x" * (LONGEST_FILE_NAME + 1): b""})
    assert (kind, text) == (
        revolute.ArgumentError,
        "assets: expected at most 1024 characters, got 1025; choose another name",
    )
    for simulator in simulators.values():
        assert simulator.load_model(model_text(), name="x" * LONGEST_NAME)


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_file_gives_no_such_name(simulators: dict[str, Simulator], element: str) -> None:
    named = "the model" if element == "model" else f"{element} {int(element == 'body')}"
    for word, fault in (
        ("y" * 257, "at most 256 characters"),
        ("z\u202ez", "text without control characters"),
    ):
        kind, text = errors(simulators, model_text(**{element: word}))
        assert kind is revolute.ModelError
        assert f"expected {fault}" in text and f"in the name of {named}, got" in text


@pytest.mark.parametrize("word", PLAIN)
def test_names_of_all_scripts_are_kept(simulators: dict[str, Simulator], word: str) -> None:
    for simulator in simulators.values():
        # a name of its own, for another model keeps the name that it has
        model = simulator.load_model(model_text(body=word, joint=f"{word} joint"), name=word)
        assert model.name == word
        assert model.body_names[1] == word
