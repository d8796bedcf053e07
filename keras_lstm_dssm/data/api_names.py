"""Public names: the shortest public path of each function and class.

`asarray_chkfinite` is defined in `numpy.lib._function_base_impl`, but users
import it as `numpy.asarray_chkfinite`. Re-exports are followed from every
public module, so that a definition gets one name however often it is imported.
"""

import heapq
import re
from collections.abc import Iterator, Mapping

from keras_lstm_dssm.data.api_sources import Definition, Module

# Folders of implementation; their public parts are exported elsewhere.
INTERNAL = {
    "src",
    "python",
    "core",
    "compiler",
    "tools",
    "codegen",
    "dtensor",
}
# Modules whose contents are known under the name of another module.
_RENAMED = {
    "builtins": "",
    "posix": "os",
    "posixpath": "os.path",
    "_io": "io",
    "_csv": "csv",
}


def public_names(modules: Mapping[str, Module]) -> dict[Definition, str]:
    """Maps each public definition to its shortest public dotted name.

    Args:
        modules: All modules, from `api_sources.read_modules`.

    Returns:
        Definition -> name, of public definitions only, in a fixed order.
    """
    queue = [
        _entry(_RENAMED.get(name, name), name)
        for name in modules
        if name in _RENAMED or _is_public(name)
    ]
    heapq.heapify(queue)
    seen: set[str] = set()
    names: dict[Definition, tuple[int, bool, str]] = {}
    while queue:
        *_, path, name = heapq.heappop(queue)
        if name in seen:
            continue
        seen.add(name)
        for key, (source, item) in _bindings(modules, name):
            public = f"{path}.{key}".lstrip(".")
            if item is None:
                # A plain module imports others to use, not to export them.
                if modules[name].is_package:
                    heapq.heappush(queue, _entry(public, source))
                continue
            for entry in modules[source].definitions[item]:
                full = public + entry.name[len(item) :]
                rank = (full.count("."), source != name, full)
                names[entry] = min(rank, names.get(entry, rank))
    return {entry: rank[-1] for entry, rank in names.items()}


def title(name: str) -> str:
    """Splits a dotted name into lower-case words.

    >>> title("numpy.asarray_chkfinite"), title("http.server.HTTPServer")
    ('numpy asarray chkfinite', 'http server')
    """
    spaced = re.sub(r"([a-z])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", name)
    words = re.split(r"[._\s]+", spaced.lower().strip("._"))
    distinct: list[str] = []
    for word in words:
        if distinct[-1:] != [word]:
            distinct.append(word)
    for size in (2, 3):  # http server http server -> http server
        for at in range(len(distinct) - 2 * size, -1, -1):
            if distinct[at : at + size] == distinct[at + size : at + 2 * size]:
                del distinct[at : at + size]
    return " ".join(distinct)


def _entry(path: str, name: str) -> tuple[int, bool, str, str]:
    return path.count("."), path != name, path, name


def _is_public(name: str) -> bool:
    parts = name.split(".")
    return not (
        any(part.startswith("_") for part in parts) or INTERNAL & {*parts[1:]}
    )


def _bindings(
    modules: Mapping[str, Module], name: str
) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yields (public name, (module, definition, or None for the module))."""
    module = modules[name]
    for key in module.definitions:
        if not key.startswith("_"):
            yield key, (name, key)
    for key, (source, item) in module.imports.items():
        if not key.startswith("_"):
            origin = _resolve(modules, source, item)
            if origin and _belongs(origin[0], name):
                yield key, origin
    for source in module.stars:
        if source in modules and source != name and _belongs(source, name):
            yield from _bindings(modules, source)


def _resolve(
    modules: Mapping[str, Module], source: str, item: str | None, depth: int = 0
) -> tuple[str, str | None] | None:
    """Follows an import to the module that has the definition."""
    if item is None:
        return (source, None) if source in modules else None
    if f"{source}.{item}" in modules and (
        source not in modules or item not in modules[source].imports
    ):
        return f"{source}.{item}", None
    module = modules.get(source)
    if module is None or depth > 8:
        return None
    if item in module.definitions:
        return source, item
    if item in module.imports:
        return _resolve(modules, *module.imports[item], depth + 1)
    for star in module.stars:
        origin = _resolve(modules, star, item, depth + 1)
        if origin:
            return origin
    return None


def _belongs(source: str, name: str) -> bool:
    """Returns whether a definition in `source` may be public in `name`."""
    top = source.split(".")[0]
    return top == name.split(".")[0] or top.startswith("_") or top == "posix"
