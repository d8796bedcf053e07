"""What all programs share: flags, help, one-line errors, JSON results.

A program is a module with its own `FLAGS`, a docstring that serves as its
help, and `run = program(main, FLAGS, __doc__)`, which is both the console
script and what tests call.
"""

import io
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable, write_json


def new_flags() -> flags.FlagValues:
    """Returns a program's own flags, with `--json` and `--debug` defined.

    Each program has its own set, so that several can live in one process
    (absl's global set refuses the second `--data`).
    """
    values = flags.FlagValues()
    flags.DEFINE_string(
        "json", None, "Also write the results to this file, as JSON.",
        flag_values=values,
    )  # fmt: skip
    flags.DEFINE_bool(
        "debug", False, "Show a trace-back for wrong input too.",
        flag_values=values,
    )  # fmt: skip
    flags.DEFINE_bool(
        "help", False, "Show this help.", short_name="h", flag_values=values
    )
    return values


def program(
    main: Callable[[list[str]], Mapping[str, Any] | None],
    values: flags.FlagValues,
    doc: str,
    required: Sequence[str] = (),
    arguments: bool = False,
) -> Callable[..., int]:
    """Wraps `main` into a console script.

    Args:
        main: Called with the arguments that are not flags. What it returns
            is written to `--json=FILE`.
        values: The program's flags, from `new_flags`.
        doc: The help text: what it does and an example.
        required: The flags that must be given, and not be empty.
        arguments: Whether it takes arguments that are not flags.

    Returns:
        `run(argv=None) -> int`. It returns 0, or 1 after one line on
        standard error when the input is wrong (`InputError`) or a file
        cannot be read or written (`OSError`).
    """

    def run(argv: Sequence[str] | None = None) -> int:
        values.unparse_flags()
        for name in values:
            values[name].unparse()
        argv = list(sys.argv if argv is None else argv)
        if isinstance(sys.stdout, io.TextIOWrapper):  # any title can be shown
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            if {"--help", "-h", "--helpfull"} & set(argv[1:]):
                print(f"{doc.strip()}\n\nFlags:\n{values.get_help()}")
                return 0
            given = values(argv)[1:]
            if given and not arguments:
                raise InputError(
                    f"unexpected argument {given[0]!r}; quote globs"
                )
            for name in required:
                if not values[name].value:
                    raise InputError(
                        f"--{name} is missing: {values[name].help}"
                    )
            if values.json:
                check_writable(values.json)
            result = main(given)
            if values.json and result is not None:
                write_json(values.json, result)
            return 0
        except (InputError, OSError, flags.Error) as error:
            if values.is_parsed() and values.debug:
                raise
            print(f"error: {_one_line(error)}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130

    logging.getLogger("absl").setLevel(logging.ERROR)
    return run


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
