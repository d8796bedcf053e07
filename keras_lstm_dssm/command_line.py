"""The base of all programs: flags, help, one-line errors, JSON results.

A program has two modules. The one in `tools/flags` has a docstring that serves
as its help, its own `FLAGS`, and a `COMMAND_LINE`; it imports no TensorFlow, so
that help and wrong flags are answered at once. The one of the same name in
`tools` has the work, and `run = COMMAND_LINE.program(main)`, which
`lstm_dssm_programs` and tests call. The programs in `benchmarks` are one module
each.
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
from keras_lstm_dssm.version import __version__

Main = Callable[[list[str]], Mapping[str, Any] | None]
"""The work of a program: takes the arguments that are not flags, and returns
what `--json=FILE` writes."""


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


class CommandLine:
    """The help and the flags of a program, and how it parses them.

    Args:
        doc: The help: what the program does, and an example.
        values: The program's flags, from `new_flags`.
        required: Names of the flags that must not be missing or empty.
        arguments: Whether the program takes arguments that are not flags.
        tensorflow: Whether the program's work needs TensorFlow.

    Example:
        >>> COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["output"])
        >>> run = COMMAND_LINE.program(main)
    """

    def __init__(
        self,
        doc: str,
        values: flags.FlagValues,
        required: Sequence[str] = (),
        arguments: bool = False,
        tensorflow: bool = True,
    ) -> None:
        self.doc = doc
        self.values = values
        self.required = required
        self.arguments = arguments
        self.tensorflow = tensorflow
        self._names: list[str] = []

    def program(self, main: Main) -> Callable[..., int]:
        """Wrap `main` into a function that parses flags and reports errors.

        Args:
            main: The work.

        Returns:
            `run(argv=None) -> int`, the exit code: 0; 1 after one line on
            standard error when the input is wrong (`InputError`) or a file
            cannot be read or written (`OSError`); 130 after ctrl-c.
        """

        def run(argv: Sequence[str] | None = None) -> int:
            code = self.check(argv)
            if code is None:
                code = self._reported(self._work, main)
            return code or 0

        return run

    def check(self, argv: Sequence[str] | None = None) -> int | None:
        """Parse the flags, and print the help, or what is wrong with them.

        Args:
            argv: The program's name, flags and arguments; by default those of
                this process.

        Returns:
            The exit code, see `program`; None if there is work to do.
        """
        return self._reported(
            self._parse, list(sys.argv if argv is None else argv)
        )

    def _parse(self, argv: list[str]) -> int | None:
        values = self.values
        logging.getLogger("absl").setLevel(logging.ERROR)
        values.unparse_flags()
        for name in values:
            values[name].unparse()
        if isinstance(sys.stdout, io.TextIOWrapper):  # prints any title
            sys.stdout.reconfigure(errors="backslashreplace")
        if argv[1:] == ["--version"]:  # with a value it is a flag of query
            print(f"keras-lstm-dssm {__version__}")
            return 0
        if {"--help", "-h", "--helpfull"} & set(argv[1:]):
            print(
                f"{self.doc.strip()}\n\nFlags:\n{_flags_help(values)}\n"
                "  --version: Alone: show the version of the package."
            )
            return 0
        self._names = values(argv)[1:]
        if self._names and not self.arguments:
            raise InputError(
                f"unexpected argument {self._names[0]!r}; quote globs"
            )
        for name in self.required:
            if not values[name].value:
                raise InputError(f"--{name} is missing: {values[name].help}")
        if values.json:
            check_writable(values.json)
        return None

    def _work(self, main: Main) -> int:
        result = main(self._names)
        if self.values.json and result is not None:
            write_json(self.values.json, result)
        return 0

    def _reported(
        self, work: Callable[..., int | None], *arguments: Any
    ) -> int | None:
        """Call a function; print an error in one line and return its code."""
        try:
            return work(*arguments)
        except (InputError, OSError, flags.Error) as error:
            if self.values.is_parsed() and self.values.debug:
                raise
            print(f"error: {_one_line(error, self.values)}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130


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
