"""Makes flags, and the NAMEs of `--set NAME=VALUE`, from fields of settings."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any, get_origin

from absl import flags

from keras_lstm_dssm.command_line import FlagSet, Program
from keras_lstm_dssm.settings.fields import (
    Settings,
    help_of,
    least_of,
    types_of,
)

# absl allows a value equal to a bound, so excluded bounds move by _MARGIN.
_MARGIN = 1e-9
_MOST = 1e30  # largest value of a float flag; float32 overflows at 3e38


def define_settings(
    program: Program,
    classes: Mapping[str, type[Settings]],
    named: Collection[str] | None = None,
    defaults: bool = False,  # whether flags get the defaults of the fields
    only: Collection[str] = (),  # names of fields; `()`: all fields
) -> None:
    """Defines a flag, or a NAME of `--set`, for each field of the classes.

    If only some classes have a field, the help starts with the keys of these
    classes. If `named` is given, fields not in `named` are set by `--set`.
    """
    owners: dict[str, list[str]] = {}
    definitions: dict[str, tuple[dataclasses.Field[Any], str]] = {}
    for owner, cls in classes.items():
        texts = help_of(cls)
        for field in dataclasses.fields(cls):
            if only and field.name not in only:
                continue
            if field.metadata.get("flag", True):
                owners.setdefault(field.name, []).append(owner)
                definitions.setdefault(field.name, (field, texts[field.name]))
    for name, (field, text) in definitions.items():
        if len(owners[name]) < len(classes):
            prefix = ", ".join(owners[name])
            lower = text if text[1:2].isupper() else text[0].lower() + text[1:]
            text = f"{prefix[0].upper()}{prefix[1:]}: {lower}"
        default = field.default if defaults else None
        if default is dataclasses.MISSING:
            default = None
        is_named = named is None or name in named
        flag_set = program if is_named else program.settings
        define_field(flag_set, field, default, text)


def define_field(
    program: FlagSet, field: dataclasses.Field[Any], default: Any, text: str
) -> None:
    """Defines a flag with the type, bounds and choices of a field."""
    bounds, types = field.metadata, types_of(field)
    name = bounds.get("flag", field.name)
    if names := bounds.get("choices") or bounds.get("names"):
        program.enum(name, default, list(names), text)
    elif bool in types:
        program.bool(name, default, text)
    elif int in types:
        most = bounds.get("most")
        program.integer(name, default, text, least_of(field), most)
    elif get_origin(types[0]) is tuple:
        program.list(name, default and [*default], text)
    elif float not in types:
        program.string(name, default, text)
    elif "below" in bounds:
        below = bounds["below"]
        program.float(name, default, text, 0.0, below - _MARGIN)
        expected = f"a number from 0, below {below:g}"
        program.flags[name].parser.syntactic_help = expected
        check_finite(program, name)
    else:
        above = bounds.get("above")
        least = bounds.get("least", 0.0) if above is None else above + _MARGIN
        program.float(name, default, text, float(least), bounds.get("most"))
        if above is not None:
            expected = f"a number above {above:g}"
            program.flags[name].parser.syntactic_help = expected
        check_finite(program, name)


def check_finite(program: FlagSet, name: str) -> None:
    """Makes a flag reject NaN and numbers above `_MOST`."""
    flags.register_validator(
        name,
        lambda value: value is None or value <= _MOST,
        f"expected a finite number, {_MOST} at most",
        flag_values=program.flags,
    )


def flag_names(classes: Iterable[type[Settings]]) -> list[str]:
    """Returns the names of the fields that can be set by a flag or `--set`."""
    return list(
        dict.fromkeys(
            field.name
            for cls in classes
            for field in dataclasses.fields(cls)
            if field.metadata.get("flag", True)
        )
    )
