"""BaseRecipe: settings that are checked, copied with changes, and written."""

import dataclasses
import inspect
import random
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

from keras_lstm_dssm.errors import InputError

_Self = TypeVar("_Self", bound="BaseRecipe")


@dataclasses.dataclass(frozen=True)
class BaseRecipe:
    """Base of the recipes: copies with changes, JSON values and checks.

    A recipe is a frozen dataclass. Its constructor raises `InputError` for a
    value that is out of range.
    """

    def replace(self: _Self, **changes: Any) -> _Self:
        """Returns a copy with some values changed.

        Args:
            **changes: Attribute -> value.

        Raises:
            InputError: There is no such attribute, or a value is wrong.
        """
        names = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in names:
                raise InputError(
                    f"a recipe has no {name!r}: expected one of "
                    f"{', '.join(sorted(names))}"
                )
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns the values as a dict that can be written as JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[_Self], values: Mapping[str, Any]) -> _Self:
        """Makes a recipe from the result of `to_dict`.

        Raises:
            InputError: A name is unknown, or a value is wrong.
        """
        return cls().replace(**values)

    def _check_choice(self, name: str, allowed: Collection[str]) -> None:
        if getattr(self, name) not in allowed:
            raise InputError(
                f"{name} is {getattr(self, name)!r}: expected one of "
                f"{', '.join(allowed)}"
            )

    def _check_positive(self, name: str) -> None:
        value = getattr(self, name)
        if not is_number(value) or not 0 < value < float("inf"):
            raise InputError(
                f"{name} is {value!r}: expected a finite number above 0"
            )

    def _check_flags(self) -> None:
        """Checks all bool fields."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is bool and type(value) is not bool:
                raise InputError(
                    f"{field.name} is {value!r}: expected True or False"
                )

    def _check_whole_numbers(self) -> None:
        """Checks all int fields: at least 0 if that is their default."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            least = 0 if field.default == 0 else 1
            if field.type is int and (type(value) is not int or value < least):
                raise InputError(
                    f"{field.name} is {value!r}: expected a whole number of "
                    f"{least} or more"
                )


def is_number(value: Any) -> bool:
    """Returns whether a value is an int or a float."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def classes_of(module: ModuleType, base: type) -> list[str]:
    """Lists the public classes of a module that a recipe can name.

    Args:
        module: The module, such as `keras_lstm_dssm.encoders`.
        base: Their base class, which is not one of them.
    """
    return [
        name
        for name in module.__all__
        if isinstance(made := getattr(module, name), type)
        and issubclass(made, base)
        and made is not base
    ]


def check_arguments(
    made: type, base: type, name: str, config: Any, without: Collection[str]
) -> None:
    """Checks that a class has the arguments of a configuration.

    Args:
        made: The class, whose constructors up to `base` are looked at.
        base: The base class of all such classes.
        name: What the configuration is called in the message.
        config: Argument -> value.
        without: Arguments that a recipe sets itself.

    Raises:
        InputError: `config` is no mapping, or has an unknown argument.
    """
    known = {"dtype", "trainable"}
    for each in made.__mro__:
        if issubclass(each, base):
            known.update(inspect.signature(each.__init__).parameters)
    known -= {"self", "kwargs", "name", *without}
    if not isinstance(config, Mapping) or not known.issuperset(config):
        raise InputError(
            f"{name} is {config!r}: expected arguments of {made.__name__}, "
            f"which are {', '.join(sorted(known))}"
        )


@contextmanager
def seeded_initializers(seed: int) -> Iterator[None]:
    """Makes all weights that are created meanwhile a function of `seed`."""
    # An initializer without a seed draws one from Python's own generator.
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
