"""Paragraphs of plain sentences, from docstrings or from a text file."""

import ast
import gzip
import itertools
import os
from collections.abc import Iterable, Iterator

from keras_lstm_dssm.data.api_search import build_api_search
from keras_lstm_dssm.data.api_sentences import sentence_runs
from keras_lstm_dssm.data.api_sources import (
    Definition,
    distributions,
    parse_file,
    read_modules,
    source_files,
)
from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing

PROSE_FORMAT = 1  # increment when the same packages give other paragraphs

_DOCUMENTED = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
)  # fmt: skip


def api_paragraphs() -> list[list[str]]:
    """Reads the prose of the docstrings that API search is made from.

    A paragraph is a run of consecutive sentences of one docstring (of a
    module, class or function, private ones too), with the summary first.
    Code, lists of parameters, tables and boilerplate end a run; runs of one
    sentence, and runs in which every sentence occurred before, are left out.
    The paragraphs are written once to a file in API search's folder.

    The paragraphs contain the training queries of API search, but no query
    of dev or test and no title. The other sentences of a docstring that
    begins with a dev or test query are included.

    Returns:
        Paragraphs of two or more sentences, in a fixed order; plain words
        without markup and without the closing full stop.

    Raises:
        InputError: This package is not installed.

    Example:
        >>> api_paragraphs()[7]  # doctest: +SKIP
        ['Set the profiling function', 'It will be called on each call']
    """
    collection = build_api_search()
    path = os.path.join(collection.folder, f"paragraphs-{PROSE_FORMAT}.txt.gz")
    if not os.path.isfile(path):
        held_out = {
            collection.queries[query].casefold()
            for split in ("dev", "test")
            for query in collection.qrels(split)
        }
        docs = (doc for _, doc in docstrings())
        _write(path, _clean(docs, held_out))
    return read_paragraphs(path)


def read_paragraphs(path: str | os.PathLike[str]) -> list[list[str]]:
    """Reads paragraphs: one sentence a line, blank lines between paragraphs.

    Args:
        path: UTF-8 text, compressed if the name ends in `.gz`.

    Returns:
        The paragraphs, of one or more sentences, unchanged.

    Raises:
        InputError: The file is empty, damaged or not UTF-8, or has no two
            sentences in a row.

    Example:
        >>> read_paragraphs("novel.txt.gz")[0]  # doctest: +SKIP
        ['It was a dark night.', 'The rain fell.']
    """
    paragraphs: list[list[str]] = [[]]
    for line in map(str.strip, text_lines(path)):
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    if max(map(len, paragraphs)) < 2:
        raise InputError(
            f"{os.fspath(path)}: found no two lines of text in a row, expected"
            " a sentence a line and blank lines between paragraphs only: write"
            " it so"
        )
    return [paragraph for paragraph in paragraphs if paragraph]


def docstrings() -> Iterator[tuple[str, str]]:
    """Yields (module, docstring) of all that API search reads, repeatedly.

    The module is a dotted name; a package has the name of its folder.
    """
    return ((one.module, one.doc) for one in documented())


def documented() -> Iterator[Definition]:
    """Yields modules, classes and functions with their docstrings, or "".

    A module comes before what it contains, and its own name is "". That of
    a method has no class.
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


def _clean(docs: Iterable[str], held_out: set[str]) -> Iterator[list[str]]:
    """Yields paragraphs with a new sentence and no held-out sentence."""
    known: set[str] = set()
    for doc in dict.fromkeys(docs):
        for run in sentence_runs(doc):
            for may_be_used, group in itertools.groupby(
                run, lambda sentence: sentence.casefold() not in held_out
            ):
                paragraph = list(group)
                if (
                    may_be_used
                    and len(paragraph) > 1
                    and not known.issuperset(paragraph)
                ):
                    known.update(paragraph)
                    yield paragraph


def _write(path: str, paragraphs: Iterable[list[str]]) -> None:
    with (
        replacing(path) as partial,
        gzip.open(partial, "wt", encoding="utf-8") as file,
    ):
        for paragraph in paragraphs:
            file.write("\n".join(paragraph) + "\n\n")
