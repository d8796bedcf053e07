"""The base of all programs: flags, help, one-line errors, JSON results.

A program is a module with a docstring that serves as its help, its own
`FLAGS`, and `run = program(main, FLAGS, __doc__)`. `lstm_dssm_programs` and
tests call `run`.
"""

import io
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable, write_json


def new_flags() -> flags.FlagValues:
    """Return the flags that every program has: `--json`, `--debug`, `--help`.

    Each program has a set of its own, since several can be imported into one
    process and absl's global set does not allow a second `--data`.
    """
    values = flags.FlagValues()
    define = definers(values)
    define.string(
        "json", None, "File to which the results are also written, as JSON."
    )
    define.bool(
        "debug", False, "Show tracebacks of errors, also for wrong input."
    )
    define.bool("help", False, "Show this help.", short_name="h")
    return values


class Definers(NamedTuple):
    """absl's functions `DEFINE_string`, ..., for one program's flags."""

    string: Callable[..., Any]
    integer: Callable[..., Any]
    float: Callable[..., Any]
    bool: Callable[..., Any]
    enum: Callable[..., Any]
    list: Callable[..., Any]


def definers(values: flags.FlagValues) -> Definers:
    """Return absl's functions with `flag_values` bound to a program's flags."""
    return Definers(
        *(
            partial(getattr(flags, f"DEFINE_{kind}"), flag_values=values)
            for kind in Definers._fields
        )
    )


def program(
    main: Callable[[list[str]], Mapping[str, Any] | None],
    values: flags.FlagValues,
    doc: str,
    required: Sequence[str] = (),
    arguments: bool = False,
) -> Callable[..., int]:
    """Wrap `main` into a function that parses flags and reports errors.

    Args:
        main: Called with the arguments that are not flags. `--json=FILE`
            writes the mapping that it returns.
        values: The program's flags, from `new_flags`.
        doc: The help: what the program does, and an example.
        required: Names of the flags that must not be missing or empty.
        arguments: Whether the program takes arguments that are not flags.

    Returns:
        `run(argv=None) -> int`, the exit code: 0; 1 after one line on
        standard error when the input is wrong (`InputError`) or a file
        cannot be read or written (`OSError`); 130 after ctrl-c.
    """

    def run(argv: Sequence[str] | None = None) -> int:
        logging.getLogger("absl").setLevel(logging.ERROR)
        values.unparse_flags()
        for name in values:
            values[name].unparse()
        argv = list(sys.argv if argv is None else argv)
        if isinstance(sys.stdout, io.TextIOWrapper):  # prints any title
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            if {"--help", "-h", "--helpfull"} & set(argv[1:]):
                print(f"{doc.strip()}\n\nFlags:\n{_flags_help(values)}")
                return 0
            names = values(argv)[1:]
            if names and not arguments:
                raise InputError(
                    f"unexpected argument {names[0]!r}; quote globs"
                )
            for name in required:
                if not values[name].value:
                    raise InputError(
                        f"--{name} is missing: {values[name].help}"
                    )
            if values.json:
                check_writable(values.json)
            result = main(names)
            if values.json and result is not None:
                write_json(values.json, result)
            return 0
        except (InputError, OSError, flags.Error) as error:
            if values.is_parsed() and values.debug:
                raise
            print(f"error: {_one_line(error, values)}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130

    return run


def _flags_help(values: flags.FlagValues) -> str:
    """Return the help of a program's flags, without the modules' names."""
    lines = values.get_help(include_special_flags=False).splitlines()
    return "\n".join(line for line in lines if line.startswith(" "))


def _one_line(error: BaseException, values: flags.FlagValues) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, flags.IllegalFlagValueError):
        # absl's message ends with that of Python's `int`, for example.
        match = re.match(r"flag (--(\w+)=.*?): ", message)
        expected = match and values[match[2]].parser.syntactic_help
        if match and expected and "expected" not in message[match.end() :]:
            return f"{match[1]}: expected {expected}"
    return message
