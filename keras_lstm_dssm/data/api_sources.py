"""Reads definitions, imports and docstrings of installed Python packages.

The sources are the Python standard library and the requirements of this
package. Data sets made from these sources therefore do not depend on other
installed packages. Python files are parsed with `ast` and not run. C modules
are imported.
"""

import ast
import gc
import importlib
import importlib.metadata
import inspect
import itertools
import os
import re
import sysconfig
import types
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from packaging.requirements import Requirement

from keras_lstm_dssm.errors import InputError

DISTRIBUTION = "keras-lstm-dssm"

# These requirements were added after results on the data sets were published.
# They are left out, so that the data sets do not change.
_LEFT_OUT = ("duckdb", "jinja2", "pyyaml")

# Paths of tests, examples, vendored packages, generated and internal code.
_NOT_API = re.compile(
    r"(^|/)(tests?|idlelib|lib2to3|turtledemo|site-packages|ensurepip"
    r"|distutils|pydoc_data|_?vendor(ed)?|_distutils|examples?|internal"
    r"|config-[^/]*|__phello__|lib-dynload|raw_ops|_tf_keras|__internal__"
    r"|tensorflow/(compiler|python/keras|python/debug)"
    r"|__main__\.py|(antigravity|this|setup|ntpath|nturl2path|conftest)\.py"
    r"|test_[^/]*\.py|[^/]*_(test|pb2|pb2_grpc)\.py)(/|$)"
)
_PUBLIC_TEST_FOLDERS = "tensorflow/_api/v2/test/"


def distributions() -> list[importlib.metadata.Distribution]:
    """Returns the installed direct and indirect requirements of the package."""
    packages: dict[str, importlib.metadata.Distribution] = {}
    unread = [DISTRIBUTION]
    while unread:
        name = re.sub(r"[-_.]+", "-", unread.pop()).lower()
        if name in packages or name in _LEFT_OUT:
            continue
        try:
            packages[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name == DISTRIBUTION:
                raise InputError(
                    f"the package {name} is not installed, so its"
                    " requirements are not known: run pip install -e ."
                ) from None
            continue
        for line in packages[name].requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            if marker is None or marker.evaluate({"extra": ""}):
                unread.append(requirement.name)
    del packages[DISTRIBUTION]
    return [packages[name] for name in sorted(packages)]


def source_files(
    packages: list[importlib.metadata.Distribution],
) -> Iterator[tuple[str, str]]:
    """Yields (path, path below the root folder) of files, in a fixed order.

    The root is the folder of the standard library, or of installed packages.
    """
    root = sysconfig.get_path("stdlib")
    for folder, folders, names in os.walk(root):
        below = os.path.relpath(folder, root).removeprefix(".")
        folders[:] = sorted(
            name for name in folders if not _NOT_API.search(f"{name}/")
        )
        for name in sorted(names):
            path_in_root = os.path.join(below, name)
            if name.endswith(".py") and not _NOT_API.search(path_in_root):
                yield os.path.join(folder, name), path_in_root
    for distribution in packages:
        for path_in_root in sorted(map(str, distribution.files or ())):
            if path_in_root.endswith(".py") and (
                not _NOT_API.search(path_in_root)
                or path_in_root.startswith(_PUBLIC_TEST_FOLDERS)
            ):
                yield str(distribution.locate_file(path_in_root)), path_in_root


# C modules from which Python modules take names: csv has names of _csv.
C_MODULES = (
    "_bisect _bz2 _codecs _collections _csv _datetime _functools _hashlib "
    "_heapq _io _json _lzma _operator _pickle _random _signal _socket "
    "_sqlite3 _ssl _struct _thread _weakref array atexit binascii builtins "
    "cmath errno gc itertools marshal math mmap posix select sys time "
    "unicodedata zlib"
).split()


class Definition(NamedTuple):
    """Holds the docstring of a module, class, function or method."""

    module: str
    name: str  # "" for a module itself
    doc: str


class Module:
    """Holds the definitions and the imports of a module."""

    def __init__(self, name: str, is_package: bool = False) -> None:
        self.name, self.is_package = name, is_package
        # Name -> the definition of a function, or of a class and its methods.
        self.definitions: dict[str, list[Definition]] = {}
        # Name that an import binds -> source module, and name in the source
        # module. After `import module as name`, the second item is `None`.
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.stars: list[str] = []  # modules that are imported with `*`
        # For each call of NumPy's `add_newdoc`: (module, class, name,
        # docstring). The class is "" if the name is not in a class.
        self.added: list[tuple[str, str, str, str]] = []

    def define(self, name: str, doc: str | None, owner: str = "") -> None:
        """Adds a function, a class, or a method of the class `owner`."""
        definitions = self.definitions.setdefault(owner or name, [])
        if doc:
            full_name = f"{owner}.{name}" if owner else name
            definitions.append(Definition(self.name, full_name, doc))

    def read(self, body: list[ast.stmt]) -> None:
        """Reads the statements of a module, also inside of `if` and `try`."""
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.define(node.name, ast.get_docstring(node))
            elif isinstance(node, ast.ClassDef):
                self._read_class(node)
            elif isinstance(node, ast.ImportFrom):
                self._read_import(node)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname:
                        self.imports[alias.asname] = (alias.name, None)
            elif isinstance(node, ast.If | ast.Try):
                self.read(node.body)
                for handler in getattr(node, "handlers", ()):
                    self.read(handler.body)
                self.read(node.orelse)
            elif isinstance(node, ast.Assign):
                self._read_alias(node)
            elif isinstance(node, ast.Expr):
                self._read_added(node.value)

    def _read_class(self, node: ast.ClassDef) -> None:
        self.define(node.name, ast.get_docstring(node))
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                if not item.name.startswith("_"):
                    self.define(item.name, ast.get_docstring(item), node.name)

    def _read_import(self, node: ast.ImportFrom) -> None:
        packages = self.name.split(".")
        depth = len(packages) - node.level + self.is_package
        base = packages[:depth] if node.level else []
        source = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(source)
            else:
                name = alias.asname or alias.name
                self.imports.setdefault(name, (source, alias.name))

    def _read_alias(self, node: ast.Assign) -> None:
        """Treats `a = b` and `a = module.b` like imports.

        `a = a_gen()` counts as `a = a_gen`, because "a_gen" starts with "a".
        """
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Name):
            return
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id.startswith(target.id):
                value = value.func
        if isinstance(value, ast.Name):
            self.imports.setdefault(target.id, (self.name, value.id))
        elif isinstance(value, ast.Attribute) and isinstance(
            value.value, ast.Name
        ):
            source, name = self.imports.get(value.value.id, ("", None))
            source = f"{source}.{name}" if name else source
            self.imports.setdefault(target.id, (source, value.attr))

    def _read_added(self, call: ast.expr) -> None:
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "add_newdoc"
        ):
            try:
                module, name, doc = map(ast.literal_eval, call.args[:3])
            except ValueError:  # an argument is computed
                return
            if isinstance(doc, str):
                self.added.append((module, "", name, doc))
            elif isinstance(doc, tuple):
                self.added.append((module, name, *doc))


def read_modules(
    packages: list[importlib.metadata.Distribution],
) -> dict[str, Module]:
    """Reads the modules of the packages and of the standard library."""
    modules = {name: _read_loaded(name) for name in C_MODULES}
    was_enabled = gc.isenabled()
    # Garbage collection would take half of the total time. It is not needed,
    # because syntax trees have no cycles.
    gc.disable()
    try:
        for path, path_in_root in source_files(packages):
            dotted = path_in_root.removesuffix(".py").replace("/", ".")
            name = dotted.removesuffix(".__init__")
            modules[name] = Module(name, is_package=name != dotted)
            modules[name].read(parse_file(path).body)
    finally:
        if was_enabled:
            gc.enable()
    for module in list(modules.values()):
        for name, owner, item, doc in module.added:
            if name in modules:
                modules[name].define(item, doc, owner)
    return modules


def parse_file(path: str) -> ast.Module:
    """Parses a file; a missing or invalid file gives an empty module."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escape sequences
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _read_loaded(name: str) -> Module:
    """Reads the docstrings of a C module, if the module can be imported."""
    module = Module(name)
    try:
        loaded = importlib.import_module(name)
    except ImportError:
        return module
    for key, value in sorted(vars(loaded).items()):
        if key.startswith("_"):
            continue
        if isinstance(value, type) and value.__name__.lower() == key.lower():
            module.define(key, value.__doc__)
            for method, item in sorted(vars(value).items()):
                if callable(item) and not method.startswith("_"):
                    module.define(method, item.__doc__, key)
        elif isinstance(value, types.BuiltinFunctionType):
            module.define(key, value.__doc__)
    return module


_DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


def documented() -> Iterator[Definition]:
    """Yields all modules, classes and functions, even without a docstring.

    A module has the `name` "", and comes before its functions.
    """
    packages = distributions()
    for path, path_in_root in source_files(packages):
        name = path_in_root.removesuffix(".py").replace("/", ".")
        for node in ast.walk(parse_file(path)):
            if isinstance(node, _DOCUMENTED):
                yield Definition(
                    name.removesuffix(".__init__"),
                    getattr(node, "name", ""),
                    ast.get_docstring(node) or "",
                )
    # This loop adds the definitions of C modules. It also yields documented
    # definitions of Python modules a second time. Here the names of methods
    # include the class, as in "Path.open".
    for module in read_modules(packages).values():
        for definitions in module.definitions.values():
            yield from definitions


_ROLE = re.compile(r":[\w:]+:`~?(?:[^`<]*<)?([^`>]*)>?`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)|`([^`<]+?)\s*<[^`]*>`_*")
_MARKUP = re.compile(
    r"`+|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)|\|(?=\w)|(?<=`)_+"
)
_URL = re.compile(r"<?\bhttps?://\S+")
_SENTENCE_LABEL = re.compile(r"^\([\w ]+\) ")
_QUOTES = re.compile(r"(?<!\w)['\"]+|['\"]+(?!\w)")
_SIGNATURE = re.compile(
    r"^[\w.]+\([^()]*(?:\([^()]*\)[^()]*)*\)[ \t]*(-+>[ \t]*|: |--|$)", re.M
)
_RESULT = re.compile(r"^\w+[.,:;]\s+")
_BLOCK = re.compile(
    r"^(>>>|\.\. |:(param|type|returns?|rtype|raises?|arg|i?var)\b|@\w+"
    r"|[-=~*#]{3,}|--$"
    r"|(Args?|Arguments|Parameters?|Returns?|Raises|Examples?|Usage|Notes?"
    r"|Attributes|Yields|Inputs?|Outputs?|Deprecated):?\s*$)"
)
_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)(?<!\ba\.k\.a)"
    r"(?<!\bw\.r\.t)[.!?](?=\s|[)\"']?$)"
)
_BOILERPLATE = re.compile(
    r"\b(todo|fixme|xxx|deprecated|deprecation|\w*docstring|undocumented"
    r"|obsolete|auto-?generated|machine generated|internal use|private"
    r"|do not (use|call)|not implemented|(parent|base|super) ?class\.?$"
    r"|which canvas itself)\b"
    r"|^(see|same as|like|alias|synonym|overrid\w*|inherit\w*|implements?"
    r"|internal|helper|backwards?|legacy|mixin|placeholder|this is|no-op"
    r"|refer to|please"
    r"|(note|warning|error|usage|examples?|constructor|copyright):"
    r"|initialize[sd]? self|version of|for docs|visit a)\b",
    re.IGNORECASE,
)
# Starts of lines that are not prose: code, fields (":param x:"), underlines,
# lists, "x : int", "Args:", and indentation (arguments or code).
_NOT_PROSE = re.compile(
    r"\s+\S|>>>|\.\. |:\w[^:]*:(\s|$)|@\w|[-=~*#+|^]{2,}|[-*+] "
    r"|\(?(\d+|[a-z])[.)] |[\w.*, ]+ : |[\w ]{1,20}:$|[\w.]+: "
)
_NEXT_SENTENCE = re.compile(
    r"(?<![ (]e\.g\.)(?<![ (]i\.e\.)(?<=[.!?])\s+(?=[A-Z`'\"*:(])|\n\s*\n"
)
_JOINTS = str.maketrans("", "", "-/'")
_MIN_WORDS = 3
_MAX_WORDS = 32


def first_sentence(doc: str) -> str | None:
    """Returns a docstring's first sentence; `None` if it is not usable prose.

    Boilerplate, fewer than 3 words and more than 32 words are not usable.
    """
    text = _plain(_first_paragraph(doc))
    sentence = _END.split(text, maxsplit=1)[0].strip(" .,:;!?-_=")
    words = sentence.split()
    if not _MIN_WORDS <= len(words) <= _MAX_WORDS:
        return None
    if _BOILERPLATE.search(sentence) or not _is_prose(words):
        return None
    return sentence


def sentence_runs(doc: str) -> Iterator[list[str]]:
    """Yields each run of consecutive prose sentences in a docstring."""
    lines = [
        "" if _NOT_PROSE.match(line) else f"{line}\n"
        for line in inspect.cleandoc(doc).splitlines()
    ]
    for prose, block in itertools.groupby(lines, bool):
        if not prose:
            continue
        sentences = map(first_sentence, _NEXT_SENTENCE.split("".join(block)))
        for is_plain, run in itertools.groupby(sentences, bool):
            if is_plain:
                yield [sentence for sentence in run if sentence]


def _first_paragraph(doc: str) -> str:
    lines: list[str] = []
    doc = _without_signature(doc.strip())
    for line in map(str.strip, doc.splitlines()):
        if lines and (not line or _BLOCK.match(line)):
            break
        if line and not _BLOCK.match(line):
            lines.append(line)
    return " ".join(lines)


def _without_signature(doc: str) -> str:
    """Removes a signature: `D.pop(k) -> v, remove it` becomes `remove it`."""
    signature = _SIGNATURE.match(doc)
    if not signature:
        return doc
    line, _, rest = doc[signature.end() :].partition("\n")
    text, results = _RESULT.subn("", line)
    is_prose = len(text.split()) >= _MIN_WORDS and (results or not rest.strip())
    if is_prose:
        return f"{text}\n{rest}"
    return _without_signature(rest.strip(" \n-"))


def _plain(text: str) -> str:
    text = _ROLE.sub(lambda m: m[1].rsplit(".", 1)[-1].strip("()"), text)
    text = _LINK.sub(lambda m: m[1] or m[2], text)
    for noise in (_URL, _MARKUP, _QUOTES, _SENTENCE_LABEL):
        text = noise.sub("", text)
    return " ".join(text.split())


def _is_prose(words: list[str]) -> bool:
    """Returns whether the words are ASCII, mostly letters, and not code."""
    plain = sum(
        word.strip(",.:;()'\"").translate(_JOINTS).isalpha() for word in words
    )
    text = " ".join(words)
    return (
        text.isascii()
        and text[0].isalnum()
        and "(" not in words[0]
        and plain >= 0.7 * len(words)
        and not re.search(r"[{}\\|]|>>>|==|\w\(\w*,|__\w|[~^_=]{2}", text)
    )


# A label before a text: "* ", "1. ", "axis: " or "**kwargs (optional): ".
_LABEL = re.compile(
    r"(?:[-*+]|\(?\d+[.)])\s+"
    r"|`{0,2}\*{0,2}\w[\w, .*]{0,40}`{0,2}(?: ?\([^)]*\))?:\s+(?=\S+\s+\S)"
)
_TYPE = re.compile(r"[\w*, .`]+ : ")  # "axis : int, optional"


def prose_sentences(text: str) -> list[str]:
    """Returns the prose sentences of a docstring, with full stops."""
    return [
        f"{sentence}."
        for block in _blocks(text)
        for run in sentence_runs("\n".join(block))
        for sentence in run
    ]


def _blocks(text: str) -> Iterator[list[str]]:
    """Yields the lines of each paragraph or labelled item of a docstring."""
    block: list[str] = []
    # Indentation of a block's first line, and of its next lines (-1: unknown).
    first, continuation = 0, 0
    in_example = in_fence = False
    for line in text.splitlines():
        indent, line = len(line) - len(line.lstrip()), line.strip()
        if line.startswith("```"):
            in_fence = not in_fence
            line = ""
        in_example = bool(line) and (in_example or line.startswith(">>>"))
        if in_example or in_fence or _TYPE.match(line):
            line = ""
        # A label such as "axis: " starts a block. The next lines of the block
        # are indented.
        label = _LABEL.match(line)
        if label:
            line = line[label.end() :]
        continues = not label and (
            indent > first if continuation < 0 else indent == continuation
        )
        if continues:
            continuation = indent
        if block and not (line and continues):
            yield block
            block = []
        if line and not block:
            first, continuation = indent, -1 if label else indent
        if line:
            block.append(line)
    if block:
        yield block
