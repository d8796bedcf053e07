"""Paragraphs of plain sentences: docstrings of this machine, or a file."""

import ast
import gzip
import inspect
import itertools
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator

from keras_lstm_dssm.data.api_search import build_api_search
from keras_lstm_dssm.data.api_sentences import first_sentence
from keras_lstm_dssm.data.api_sources import (
    distributions,
    read_modules,
    source_files,
)
from keras_lstm_dssm.data.line_reader import text_lines
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing

FORMAT = 1  # raise when the same packages give other paragraphs

_DOCUMENTED = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
)  # fmt: skip
# Code, fields, rules, lists, "x : int" and "Args:"; what is indented
# describes an argument or is code.
_NOT_PROSE = re.compile(
    r"\s+\S|>>>|\.\. |:\w[^:]*:(\s|$)|@\w|[-=~*#+|^]{2,}|[-*+] "
    r"|\(?(\d+|[a-z])[.)] |[\w.*, ]+ : |[\w ]{1,20}:$|[\w.]+: "
)
_NEXT_SENTENCE = re.compile(
    r"(?<![ (]e\.g\.)(?<![ (]i\.e\.)(?<=[.!?])\s+(?=[A-Z`'\"*:(])|\n\s*\n"
)


def api_paragraphs(progress: bool = False) -> list[list[str]]:
    """Reads the prose of the docstrings behind API search.

    A paragraph is a run of consecutive sentences of one docstring (of a
    module, class or function, private ones too), its summary first. Code,
    lists of parameters, tables and boilerplate end a run; runs of one
    sentence, and those in which no sentence is new, are left out. It is
    built once and kept in API search's folder.

    What it shares with API search: the queries of the training split. No
    sentence that is a query of dev or test is in it, and no title; other
    sentences of the docstrings which those queries open are in it.

    Args:
        progress: Whether to say on standard error that it is being built.

    Returns:
        Paragraphs of two and more sentences, in a fixed order; plain words
        without markup and without the closing full stop.

    Raises:
        InputError: This package is not installed.

    Example:
        >>> api_paragraphs()[7]  # doctest: +SKIP
        ['Set the profiling function', 'It will be called on each call']
    """
    collection = build_api_search(progress=progress)
    path = os.path.join(collection.folder, f"paragraphs-{FORMAT}.txt.gz")
    if not os.path.isfile(path):
        if progress:
            print("Reading paragraphs (once, ~40 seconds) ...", file=sys.stderr)
        held_out = {
            collection.queries[query].casefold()
            for split in ("dev", "test")
            for query in collection.qrels(split)
        }
        _write(path, _clean(_docs(), held_out))
    return read_paragraphs(path)


def read_paragraphs(path: str | os.PathLike[str]) -> list[list[str]]:
    """Reads contiguous text: a sentence a line, blank lines between.

    Args:
        path: UTF-8 text, compressed where the name ends in `.gz`.

    Returns:
        The paragraphs, of one and more sentences, as they stand.

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


def sentence_runs(doc: str) -> Iterator[list[str]]:
    r"""Yields the runs of consecutive plain sentences of a docstring.

    >>> doc = "Sort `items` now. It is stable.\n>>> f()\n\nGo on from here."
    >>> list(sentence_runs(doc))
    [['Sort items now', 'It is stable'], ['Go on from here']]
    """
    lines = [
        "" if _NOT_PROSE.match(line) else f"{line}\n"
        for line in inspect.cleandoc(doc).splitlines()
    ]
    for prose, block in itertools.groupby(lines, bool):
        if not prose:
            continue
        found = map(first_sentence, _NEXT_SENTENCE.split("".join(block)))
        for whole, run in itertools.groupby(found, bool):
            if whole:
                yield [sentence for sentence in run if sentence]


def _docs() -> Iterator[str]:
    """Yields every doc string of the files that API search reads."""
    found = distributions()
    for path, _ in source_files(found):
        try:
            with open(path, "rb") as file, warnings.catch_warnings():
                # Invalid escapes in other people's strings.
                warnings.simplefilter("ignore")
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            continue  # listed but removed, or a template: nothing to read
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED):
                yield ast.get_docstring(node) or ""
    # C modules, and what NumPy adds from afar.
    for module in read_modules(found).values():
        for definitions in module.definitions.values():
            yield from (definition.doc for definition in definitions)


def _clean(docs: Iterable[str], held_out: set[str]) -> Iterator[list[str]]:
    """Yields the paragraphs that say something new and give nothing away."""
    known: set[str] = set()
    for doc in dict.fromkeys(docs):
        for run in sentence_runs(doc):
            for kept, group in itertools.groupby(
                run, lambda sentence: sentence.casefold() not in held_out
            ):
                paragraph = list(group)
                if (
                    kept
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
