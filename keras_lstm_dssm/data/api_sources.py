"""Definitions and imports in the source files behind API search.

Only the Python standard library and the packages that this one requires are
read, so that the corpus does not depend on what else is installed. Python
source is parsed with `ast` and never run; the docstrings of C modules are
taken from the loaded objects.
"""

import ast
import gc
import importlib
import importlib.metadata
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

# Required since the published results: the corpus stays the same without them.
_LEFT_OUT = ("duckdb", "jinja2", "pyyaml")

# Tests, examples, copies of other packages, generated and internal code.
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
    """Returns the packages that this one requires, directly or indirectly.

    Extras are left out, and so are other installed packages.
    """
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
    """Yields (path, path relative to its import root), in a fixed order."""
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


# C modules whose docstrings are read; Python modules re-export their public
# names (csv those of _csv, os those of posix).
C_MODULES = (
    "_bisect _bz2 _codecs _collections _csv _datetime _functools _hashlib "
    "_heapq _io _json _lzma _operator _pickle _random _signal _socket "
    "_sqlite3 _ssl _struct _thread _weakref array atexit binascii builtins "
    "cmath errno gc itertools marshal math mmap posix select sys time "
    "unicodedata zlib"
).split()


class Definition(NamedTuple):
    """Holds the module, name and docstring of a function, class or method."""

    module: str
    name: str
    doc: str


class Module:
    """A module's definitions, and the names that it imports.

    `definitions` are name -> its definition and those of its methods; `imports`
    are name -> (module, name in it or `None` for the module itself); `stars`
    are the modules imported with `*`; `added` are docstrings that NumPy adds
    with `add_newdoc`: (module, class or "", name, docstring).
    """

    def __init__(self, name: str, is_package: bool = False) -> None:
        self.name, self.is_package = name, is_package
        self.definitions: dict[str, list[Definition]] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.stars: list[str] = []
        self.added: list[tuple[str, str, str, str]] = []

    def define(self, name: str, doc: str | None, owner: str = "") -> None:
        """Adds a definition; a method belongs to its class `owner`."""
        entry = self.definitions.setdefault(owner or name, [])
        if doc:
            full = f"{owner}.{name}" if owner else name
            entry.append(Definition(self.name, full, doc))

    def read(self, body: list[ast.stmt]) -> None:
        """Reads the statements of a module, also inside `if` and `try`."""
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
        parts = self.name.split(".")
        keep = len(parts) - node.level + self.is_package
        base = parts[:keep] if node.level else []
        source = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(source)
            else:
                name = alias.asname or alias.name
                self.imports.setdefault(name, (source, alias.name))

    def _read_alias(self, node: ast.Assign) -> None:
        """Reads `name = other`, `name = module.other`, `beta = beta_gen()`."""
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
            except ValueError:  # computed when NumPy is imported
                return
            if isinstance(doc, str):
                self.added.append((module, "", name, doc))
            elif isinstance(doc, tuple):
                self.added.append((module, name, *doc))


def read_modules(
    packages: list[importlib.metadata.Distribution],
) -> dict[str, Module]:
    """Reads every module of the packages and of the standard library."""
    modules = {name: _read_loaded(name) for name in C_MODULES}
    collecting = gc.isenabled()
    # Syntax trees have no cycles; collection would take half of the time.
    gc.disable()
    try:
        for path, path_in_root in source_files(packages):
            module = _read_source(path, path_in_root)
            modules[module.name] = module
    finally:
        if collecting:
            gc.enable()
    for module in list(modules.values()):
        for name, owner, item, doc in module.added:
            if name in modules:
                modules[name].define(item, doc, owner)
    return modules


def _read_source(path: str, path_in_root: str) -> Module:
    parts = path_in_root.removesuffix(".py").split("/")
    is_package = parts[-1] == "__init__"
    module = Module(".".join(parts[: len(parts) - is_package]), is_package)
    module.read(parse_file(path).body)
    return module


def parse_file(path: str) -> ast.Module:
    """Parses a source file; a removed file or a template has no statement."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            # Invalid escapes in other people's strings.
            warnings.simplefilter("ignore")
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _read_loaded(name: str) -> Module:
    module = Module(name)
    try:
        loaded = importlib.import_module(name)
    except ImportError:
        return module  # not on this platform
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


_DOCUMENTED = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
)  # fmt: skip


def documented() -> Iterator[Definition]:
    """Yields modules, classes and functions with their docstrings, or "".

    A module comes before what it contains, and its own name is "". That of
    a method has no class. Modules are dotted names, a package has that of its
    folder. Docstrings may repeat.
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
    # C modules, and docstrings that NumPy adds with `add_newdoc`.
    for module in read_modules(packages).values():
        for definitions in module.definitions.values():
            yield from definitions
