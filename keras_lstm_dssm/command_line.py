"""The base of all programs: flags, help, one-line errors, JSON results.

A program is a module in `tools` or `benchmarks`. The module creates an object
`program`, defines flags, and decorates `main` by `@program.main`. absl runs
`main`: `app.run(main, flags_parser=program.parse)`. Only `main` imports
TensorFlow, so help and errors in flags appear at once.
"""

import difflib
import glob
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable, write_json
from keras_lstm_dssm.version import __version__

Main = Callable[[list[str]], Mapping[str, Any] | None]
"""A program's `main`: a function of [program name, *positional arguments] that
returns JSON values or `None`."""

_WRITTEN = ("output", "json", "ids", "portable", "run_file", "html")
"""Flags whose values are paths of output files."""

_HELP = {"--help", "-h", "-?", "--helpshort", "--helpfull"}

_COMMON = (
    "  -h,--help, --helpshort: Show this help.",
    "  --flagfile=FILE: Read flags from FILE, one a line, such as --json=OUT.",
    "  --version: Show the version of the package.",
)
"""Help lines of flags that have no definition in a `FlagSet`."""


def _define_enum(
    values: flags.FlagValues,
    name: str,
    default: str | None,
    names: Sequence[str],
    text: str,
) -> None:
    flags.DEFINE_enum(name, default, names, text, flag_values=values)
    # absl would list the names without spaces, so lines could not be wrapped.
    values[name].help = f"<{' | '.join(names)}>: {text}"


class FlagSet:
    """A set of flags, separate from absl's global set."""

    def __init__(self) -> None:
        # In absl's global set, two programs could not both define `--data`.
        self.flags = flags.FlagValues()
        self.string = partial(flags.DEFINE_string, flag_values=self.flags)
        self.integer = partial(flags.DEFINE_integer, flag_values=self.flags)
        self.float = partial(flags.DEFINE_float, flag_values=self.flags)
        self.bool = partial(flags.DEFINE_bool, flag_values=self.flags)
        self.enum = partial(_define_enum, self.flags)
        self.list = partial(flags.DEFINE_list, flag_values=self.flags)
        self.multi = partial(flags.DEFINE_multi_string, flag_values=self.flags)

    def parse_anew(self, argv: Sequence[str]) -> list[str]:
        """Parses flags; returns positional arguments. Raises `flags.Error`."""
        self.flags.unparse_flags()
        for name in self.flags:
            self.flags[name].unparse()
            self.flags[name].allow_overwrite = False
        try:
            return self.flags(argv)[1:]
        except UnicodeError as error:
            message = f"--flagfile: {error}: save it as UTF-8"
            raise flags.Error(message) from None
        except ValueError as error:  # absl's error for `--noresume=true`
            raise flags.Error(
                f"{error}: leave out the value, or the prefix `no`"
            ) from None


class Program(FlagSet):
    """The help text and the flags of a program."""

    def __init__(
        self,
        doc: str | None,
        required: Sequence[str] = (),
        arguments: bool = False,  # whether positional arguments are allowed
    ) -> None:
        super().__init__()
        self.doc = doc or ""  # `python -OO` removes docstrings
        self.required = required
        self.arguments = arguments
        self.settings = FlagSet()  # set by `--set NAME=VALUE`
        self._positional: list[str] = []
        self._main: Callable[[list[str]], int]
        self.string(
            "json", None, "File to which the results are also written, as JSON."
        )
        self.bool(
            "debug", False, "Show tracebacks of errors, also for wrong input."
        )

    def main(self, main: Main) -> Callable[[list[str]], int]:
        """Wraps `main`: errors are printed, and an exit code is returned."""

        @wraps(main)
        def reported(argv: list[str]) -> int:
            return self._reported(self._work, main, argv) or 0

        self._main = reported
        return reported

    def run(self, argv: Sequence[str]) -> int:
        """Runs the program without `absl.app.run`; returns the exit code."""
        code = self.check(argv)
        main_argv = [argv[0], *self._positional]
        return self._main(main_argv) if code is None else code

    def parse(self, argv: Sequence[str]) -> list[str]:
        """Parses flags; returns [program name, *positional arguments]."""
        code = self.check(argv)
        if code is not None:
            sys.exit(code)
        # `app.run` reads absl's global flags. Verbosity -1 logs no INFO.
        flags.FLAGS([argv[0], "--verbosity=-1"])
        # Modules of TensorFlow and Keras log to this logger.
        logging.getLogger("absl").setLevel(logging.ERROR)
        return [argv[0], *self._positional]

    def check(self, argv: Sequence[str]) -> int | None:
        """Parses flags; returns an exit code, or `None` if `main` is to run."""
        return self._reported(self._parse, [*argv])

    def check_unused(self, names: Iterable[str], why: str) -> None:
        """Raises `InputError` with the text "--NAME WHY" if a flag is set."""
        for name in names:
            if self.flags[name].present:
                raise InputError(f"--{name} {why}")

    def flag(self, name: str) -> flags.Flag:
        """Returns the flag or the setting of `--set` with this name."""
        return (self.flags if name in self.flags else self.settings.flags)[name]

    def shown(self, name: str) -> str:
        """Returns `--NAME` for a flag, and `--set NAME` for a setting."""
        return f"--{name}" if name in self.flags else f"--set {name}"

    def define_set(self, what: str) -> None:
        """Defines the flag `--set`; the flag's help begins with `what`."""
        text = f"{what}, as NAME=VALUE: --helpfull lists the names"
        self.multi("set", [], text)

    def _parse(self, argv: list[str]) -> int | None:
        values = self.flags
        # Characters that an ASCII terminal or pipe cannot print are escaped.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        given_flags = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
        if "--version" in given_flags:
            print(f"keras-lstm-dssm {__version__}")
            return 0
        if _HELP & set(given_flags):
            print(self._help("--helpfull" in given_flags))
            return 0
        try:
            self._positional = self.parse_anew(argv)
        except flags.UnrecognizedFlagError as error:
            raise InputError(self._unknown(error.flagname)) from error
        self._parse_settings(values.set if "set" in values else [])
        if self._positional and not self.arguments:
            raise InputError(
                f"unexpected argument {self._positional[0]!r}; quote globs, as"
                " in --data='*.tsv'"
            )
        for name in self.required:
            if not values[name].value:
                raise InputError(f"--{name} is missing: {values[name].help}")
        if values.json:
            check_writable(values.json)
        self._check_written()
        return None

    def _unknown(self, name: str) -> str:
        """Returns the message for an unknown flag; suggests a similar name."""
        words = name.split()
        if words[1:] and words[0] in self.flags:  # "--name value" in a flagfile
            return (
                f"--{name}: in the file of --flagfile, write"
                f" --{words[0]}=VALUE, with ="
            )
        known = self.settings.flags
        close = difflib.get_close_matches(name, [*self.flags, *known], 1)
        setting = next(
            (n for n in (name, name.removeprefix("no"), *close) if n in known),
            None,
        )
        if setting is not None:
            return f"--{name} is no flag: give --set {setting}=VALUE"
        hint = f": is --{close[0]} meant?" if close else ""
        return f"--{name} is no flag{hint or ': --help lists all'}"

    def _parse_settings(self, pairs: Sequence[str]) -> None:
        known = self.settings.flags
        for pair in pairs:
            name, equals, _ = pair.partition("=")
            if name in self.flags and name != "set":
                raise InputError(
                    f"--set {pair}: {name} has a flag: give --{pair}"
                )
            if not equals or name not in known:
                close = difflib.get_close_matches(name, known, 1)
                raise InputError(
                    f"--set {pair}: expected NAME=VALUE with "
                    + (f"the name {close[0]}, or " if close else "")
                    + "a name that --helpfull lists"
                )
        try:
            self.settings.parse_anew(["", *(f"--{pair}" for pair in pairs)])
        except flags.Error as error:
            line = _one_line(error, known)
            raise InputError(re.sub("^(flag )?--", "--set ", line)) from error

    def _check_written(self) -> None:
        """Checks that no output file is also an input or another output."""
        values = self.flags
        outputs = [name for name in _WRITTEN if name in values]
        for name in outputs:
            path = values[name].value
            is_file = bool(path) and os.path.isfile(path)
            if not path or (os.path.exists(path) and not is_file):
                continue  # flags may share a folder or a device
            for other in values if is_file else outputs:
                value = values[other].value
                if other != name and any(
                    isinstance(text, str) and _names_file(text, path)
                    for text in (value if isinstance(value, list) else [value])
                ):
                    raise InputError(
                        f"--{name}={path} would overwrite the file of"
                        f" --{other}: give another file"
                    )

    def _help(self, full: bool) -> str:
        entries = [*_entries(self.flags), *_COMMON]
        if full and len(self.settings.flags):
            entries.append("\nNames for --set:")
            entries += [
                re.sub(r"^  --(\[no\])?", "  ", entry)
                for entry in _entries(self.settings.flags)
            ]
        needed = [n for n in self.required if self.flags[n].default is None]
        names = ", ".join(f"--{name}" for name in needed)
        required = [f"Required: {names}\n"] if needed else []
        return "\n".join(
            [f"{self.doc.strip()}\n", *required, "Flags:", *entries]
        )

    def _work(self, main: Main, argv: list[str]) -> int:
        result = main(argv)
        if self.flags.json and result is not None:
            write_json(self.flags.json, result)
        return 0

    def _reported(
        self, work: Callable[..., int | None], *arguments: Any
    ) -> int | None:
        """Calls `work`; prints an error, and returns 1 (or 130 for Ctrl-C)."""
        try:
            return work(*arguments)
        except BrokenPipeError:  # `head`, for example, has closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except (InputError, OSError, flags.Error) as error:
            if self.flags.is_parsed() and self.flags.debug:
                raise
            line = printable(_one_line(error, self.flags))
            print(f"error: {line}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130


def _entries(values: flags.FlagValues) -> list[str]:
    """Returns the help of each flag, sorted by name."""
    text = values.get_help(include_special_flags=False)
    lines = [line for line in text.splitlines() if line.startswith(" ")]
    # absl adds two lines to the help of flags that can be repeated.
    text = re.sub(
        r";\n +repeat this option[^\n]*\n[^\n]*", ".", "\n".join(lines)
    )
    entries = re.split(r"\n(?=  -)", text)
    entries.sort(key=lambda e: e.split("--")[1].removeprefix("[no]"))
    return entries


# Some control characters can change the clipboard of a terminal. Line breaks
# and changes of the writing direction can forge lines.
_CONTROLS = re.compile("[\0-\x08\n-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def open_retriever(models: str, name: str) -> Any:
    """Opens the model `name`; `models` is a portable file or a folder."""
    from lstm_dssm_client.local_model import LocalModel
    from lstm_dssm_client.portable_file import PORTABLE_PART

    if os.path.isfile(models):
        local = LocalModel(models)
        local.search([], model=name)  # raises if the file has another model
        return local
    from keras_lstm_dssm.model_folders import model_folder, served_version

    base = model_folder(models, name)
    version = served_version(base)
    if version and (version / PORTABLE_PART).is_file():
        local = LocalModel(version / PORTABLE_PART)
        local.target = str(base)  # for error messages
        return local
    from lstm_dssm_programs import load_package

    load_package()
    from keras_lstm_dssm.serving import SavedRetriever

    return SavedRetriever(base)


def printable(text: str) -> str:
    r"""Escapes the control characters of an untrusted text, for a terminal.

    >>> print(printable("hex \x1b]0;owned\x07 bolt"))
    hex \x1b]0;owned\x07 bolt
    """
    return _CONTROLS.sub(
        lambda match: match[0].encode("unicode_escape").decode(), text
    )


def _names_file(text: str, path: str) -> bool:
    """Returns whether a flag's value `text`, such as "A,B*", names `path`."""
    patterns = {text, *text.split(",")} - {""}
    files = {file for p in patterns for file in (p, *glob.glob(p))}
    return os.path.realpath(path) in map(os.path.realpath, files)


_TWICE = re.compile("flag --(.*?)=(.*): already defined as (.*)")


def _one_line(error: BaseException, values: flags.FlagValues) -> str:
    """Rewords an error of absl or Python as one line."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, flags.IllegalFlagValueError):
        if twice := _TWICE.fullmatch(message):
            name, new, old = twice.groups()
            return f"--{name} is given twice, {old} and {new}: leave one out"
        if match := re.match(r"flag (--(\w+)=(.*?)): (.*)", message):
            assignment, name, value, reason = match.groups()
            parser = values[name].parser
            names = getattr(parser, "enum_values", ())
            if close := difflib.get_close_matches(value, names, 1):
                return f"{assignment}: is {close[0]} meant? {reason}"
            expected = parser.syntactic_help
            if "Non-boolean argument" in message:
                expected = "true or false"
            if expected and "expected" not in reason:
                return f"{assignment}: expected {expected}"
    return message.removeprefix("ERROR:: ")
