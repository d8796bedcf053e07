"""The base of all programs: flags, help, one-line errors, JSON results.

A program is a module in `tools` or `benchmarks` with the object `program` at
its top, whose docstring serves as its help and whose flags are defined below
it, and with `run = program.main(main)` at its end, which `lstm_dssm_programs`
and tests call. What is imported at the top of a program of `tools` loads no
TensorFlow, so that help and wrong flags are answered at once; `main` imports
the rest.
"""

import glob
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable, write_json
from keras_lstm_dssm.version import __version__

Main = Callable[[list[str]], Mapping[str, Any] | None]
"""The work of a program: takes the arguments that are not flags, and returns
what `--json=FILE` writes."""

_WRITTEN = ("output", "json", "ids", "portable", "run_file")
"""Flags of files that programs write."""


def _define_enum(
    values: flags.FlagValues,
    name: str,
    default: str | None,
    names: Sequence[str],
    text: str,
) -> None:
    """Defines a flag of names, between which its help can be wrapped."""
    flags.DEFINE_enum(name, default, names, text, flag_values=values)
    values[name].help = f"<{' | '.join(names)}>: {text}"


class Program:
    """The help and the flags of a program, and how it parses them.

    Every program has the flags `--json`, `--debug` and `--help`, in a set of
    its own: several programs can be imported into one process, and absl's
    global set does not allow a second `--data`. `string`, `integer`, `float`,
    `bool`, `enum` and `list` are absl's `DEFINE_string`, ..., for this set.
    `arguments` says whether the program takes arguments that are not flags,
    `tensorflow` whether its work needs TensorFlow; a function is called after
    the flags were parsed.
    """

    def __init__(
        self,
        doc: str | None,
        required: Sequence[str] = (),
        arguments: bool = False,
        tensorflow: bool | Callable[[], bool] = True,
    ) -> None:
        self.doc = doc or ""  # none with `python -OO`
        self.flags = flags.FlagValues()
        self.string = partial(flags.DEFINE_string, flag_values=self.flags)
        self.integer = partial(flags.DEFINE_integer, flag_values=self.flags)
        self.float = partial(flags.DEFINE_float, flag_values=self.flags)
        self.bool = partial(flags.DEFINE_bool, flag_values=self.flags)
        self.enum = partial(_define_enum, self.flags)
        self.list = partial(flags.DEFINE_list, flag_values=self.flags)
        self.required = required
        self.arguments = arguments
        self._tensorflow = tensorflow
        self._names: list[str] = []
        self.string(
            "json", None, "File to which the results are also written, as JSON."
        )
        self.bool(
            "debug", False, "Show tracebacks of errors, also for wrong input."
        )
        self.bool("help", False, "Show this help.", short_name="h")

    @property
    def tensorflow(self) -> bool:
        """Whether the work that the flags ask for needs TensorFlow."""
        needs = self._tensorflow
        return needs if isinstance(needs, bool) else needs()

    def main(self, main: Main) -> Callable[..., int]:
        """Wraps `main` into a function that parses flags and reports errors.

        `run(argv=None)` returns the exit code: 0; 1 after one line on standard
        error for `InputError` or `OSError`; 130 after ctrl-c.
        """

        def run(argv: Sequence[str] | None = None) -> int:
            code = self.check(argv)
            if code is None:
                code = self._reported(self._work, main)
            return code or 0

        return run

    def check(self, argv: Sequence[str] | None = None) -> int | None:
        """Parses the flags; returns the exit code, `None` for work to do."""
        return self._reported(
            self._parse, list(sys.argv if argv is None else argv)
        )

    def check_unused(self, names: Iterable[str], why: str) -> None:
        """Raises `InputError`, "--NAME WHY", for a flag that is set."""
        for name in names:
            if self.flags[name].present:
                raise InputError(f"--{name} {why}")

    def _parse(self, argv: list[str]) -> int | None:
        values = self.flags
        logging.getLogger("absl").setLevel(logging.ERROR)
        values.unparse_flags()
        for name in values:
            values[name].unparse()
        if isinstance(sys.stdout, io.TextIOWrapper):  # prints any title
            sys.stdout.reconfigure(errors="backslashreplace")
        if "--version" in argv[1:]:
            print(f"keras-lstm-dssm {__version__}")
            return 0
        if {"--help", "-h", "--helpfull"} & set(argv[1:]):
            print(self._help())
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
        self._check_written()
        return None

    def _check_written(self) -> None:
        """Checks that no output is also an input or another output."""
        values = self.flags
        written = [name for name in _WRITTEN if name in values]
        for name in written:
            path = values[name].value
            is_file = bool(path) and os.path.isfile(path)
            if not path or (os.path.exists(path) and not is_file):
                continue  # a folder or a device, which may be named twice
            for other in values if is_file else written:
                value = values[other].value
                texts = value if isinstance(value, list) else [value]
                if other != name and any(
                    isinstance(text, str) and _names_file(text, path)
                    for text in texts
                ):
                    raise InputError(
                        f"--{name}={path} would overwrite the file of"
                        f" --{other}: give another"
                    )

    def _help(self) -> str:
        """Returns the program's docstring and its flags, sorted by name."""
        text = self.flags.get_help(include_special_flags=False)
        lines = [line for line in text.splitlines() if line.startswith(" ")]
        entries = re.split(r"\n(?=  -)", "\n".join(lines))
        entries.sort(key=lambda e: e.split("--")[1].removeprefix("[no]"))
        entries.append("  --version: Show the version of the package.")
        needed = [n for n in self.required if self.flags[n].default is None]
        names = ", ".join(f"--{name}" for name in needed)
        required = [f"Required: {names}\n"] if needed else []
        doc = f"{self.doc.strip()}\n"
        return "\n".join([doc, *required, "Flags:", *entries])

    def _work(self, main: Main) -> int:
        result = main(self._names)
        if self.flags.json and result is not None:
            write_json(self.flags.json, result)
        return 0

    def _reported(
        self, work: Callable[..., int | None], *arguments: Any
    ) -> int | None:
        """Calls a function; prints an error in one line, returns its code."""
        try:
            return work(*arguments)
        except (InputError, OSError, flags.Error) as error:
            if self.flags.is_parsed() and self.flags.debug:
                raise
            line = printable(_one_line(error, self.flags))
            print(f"error: {line}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130


_CONTROLS = re.compile("[\0-\x08\n-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Escapes the control characters of a text that others have written.

    A terminal acts on escape sequences: on a title that has such a sequence
    it would change colours, its own title or the clipboard. Line breaks and
    changes of the direction of writing could forge other lines.

    >>> print(printable("hex \x1b]0;owned\x07 bolt"))
    hex \x1b]0;owned\x07 bolt
    """
    return _CONTROLS.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _names_file(text: str, path: str) -> bool:
    """Returns whether a flag's paths or globs, comma-separated, name a file."""
    paths = {text, *text.split(",")} - {""}
    found = {file for path in paths for file in (path, *glob.glob(path))}
    return os.path.realpath(path) in map(os.path.realpath, found)


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
