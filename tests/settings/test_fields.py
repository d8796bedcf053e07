"""Settings: fields with bounds, and the help and the flags made of them."""

import dataclasses
import json
import re

import numpy as np
import pytest
from absl import flags

from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import Settings, help_of, setting
from keras_lstm_dssm.settings.programs import ServerBounds
from keras_lstm_dssm.settings.recipes import (
    KeyVecRecipe,
    Recipe,
    ScorerRecipe,
)
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools.settings_flags import define_settings, flag_names


@dataclasses.dataclass(frozen=True)
class Size(Settings):
    """Has a size.

    Attributes:
        size: Number of words, such as `"all"`
            for all of them, see `Words`. In Python also a list.
        kind: The kind, a colon: `None` for any.
        share: Share of it.
        rate: Rate of it.
        fast: Whether it is fast.
        hidden: No flag.

    Raises:
        InputError: It is wrong.
    """

    size: int | None = setting(None, most=9)
    kind: str = setting("one", choices=("one", "two"))
    share: float = setting(0.0, below=1)
    rate: float = setting(1.0, above=0)
    fast: bool = False
    hidden: int = setting(0, flag=False)


@dataclasses.dataclass(frozen=True)
class Other(Settings):
    """Has a rate.

    Attributes:
        rate: Another text.
    """

    rate: float = setting(2.0, above=0)


def test_the_help_is_that_of_the_attributes():
    texts = help_of(Size)
    assert texts["size"] == "Number of words, such as `all` for all of them."
    assert texts["kind"] == "The kind, a colon: `None` for any."
    assert texts["hidden"] == "No flag."
    assert list(texts) == [field.name for field in dataclasses.fields(Size)]


@pytest.mark.parametrize(("changes", "message"), [
    ({"size": 0}, "size is 0: expected a whole number from 1 to 9"),
    ({"size": 10}, "size is 10: expected a whole number"),
    ({"kind": "three"}, "kind is 'three': expected one of one, two"),
    ({"kind": None}, "kind is None: expected one of one, two"),
    ({"share": 1.0}, "share is 1.0: expected 0 or more, and less than 1"),
    ({"rate": float("nan")}, "rate is nan: expected a finite number above"),
    ({"fast": 1}, "fast is 1: expected True or False"),
    ({"hidden": -1}, "hidden is -1: expected a whole number of 0 or more"),
    ({"width": 1}, "a recipe has no 'width': expected one of fast, "),
], ids=str)  # fmt: skip
def test_bounds(changes, message):
    assert Size().replace(size=9, share=0) == Size(9, share=0)
    for make in (Size().replace, lambda **some: Size.from_dict(some)):
        with pytest.raises(InputError, match=message):
            make(**changes)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: KeyVecRecipe(windows=5), "windows is 5: expected whole numbers"),
    (lambda: KeyVecRecipe(windows=()), "windows is (): expected whole numbers"),
    (lambda: KeyVecRecipe(windows="34"), "windows is '34': expected whole"),
    (lambda: KeyVecRecipe(windows=[3, 0]), "expected whole numbers of 1 or"),
    (lambda: ServerBounds(protocols=3), "protocols is 3: expected none, one"),
    (lambda: ServerBounds(protocols="openai"), "protocols is 'openai': expect"),
])  # fmt: skip
def test_wrong_lists(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
    assert KeyVecRecipe(windows=[2, 3]).windows == (2, 3)


def test_titles_can_be_an_array():
    options = {"titles": np.array(["hex bolt", "wood glue"])}
    config = TrainingConfig("clicks.tsv", "dssm", **options)
    config.check_options(options)  # which compares options with defaults
    assert [*config.titles] == ["hex bolt", "wood glue"]


def parsed(*arguments: str) -> flags.FlagValues:
    program = Program(None)
    define_settings(program, {"sizes": Size, "others": Other})
    program.flags(["program", *arguments])
    return program.flags


def test_flags():
    values = parsed("--size=9", "--kind=two", "--rate=0.5", "--fast")
    assert flag_names([Size, Other]) == [
        "size", "kind", "share", "rate", "fast"
    ]  # fmt: skip
    assert "hidden" not in values
    found = {name: values[name].value for name in flag_names([Size])}
    assert found == {
        "size": 9, "kind": "two", "share": None, "rate": 0.5, "fast": True
    }  # fmt: skip
    assert values["rate"].help == "Rate of it."
    assert values["size"].help.startswith("Sizes: number of words, such")
    for wrong in (
        "--size=0", "--size=10", "--kind=three", "--share=1", "--rate=0",
        "--rate=nan", "--rate=1e31",
    ):  # fmt: skip
        with pytest.raises(flags.IllegalFlagValueError):
            parsed(wrong)
    program = Program(None)
    named = ["kind", "rate"]
    define_settings(program, {"sizes": Size}, named, defaults=True)
    values = program.flags
    values(["program"])
    assert (values.kind, values.rate) == ("one", 1.0)
    assert "fast" not in values
    assert {*program.settings.flags} == {"size", "share", "fast"}


@pytest.mark.parametrize(
    "cls", [Recipe, ScorerRecipe, KeyVecRecipe, TrainingConfig]
)
def test_every_option_is_documented(cls):
    assert list(help_of(cls)) == [one.name for one in dataclasses.fields(cls)]


def test_numbers_of_numpy_are_numbers_of_python():
    recipe = Recipe(epochs=np.int64(2), learning_rate=np.float32(0.5))
    assert recipe == Recipe(epochs=2, learning_rate=0.5)
    assert type(recipe.epochs) is int
    assert json.loads(json.dumps(recipe.to_dict())) == recipe.to_dict()
    with pytest.raises(InputError, match="epochs is 2.5: expected a whole"):
        Recipe(epochs=np.float32(2.5))
