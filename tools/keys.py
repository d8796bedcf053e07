"""Prints the key sentences and the key words of a page.

This is the work of the program lstm-dssm-keys. Its help and its flags are in
`tools/flags/keys.py`, which is imported first and without TensorFlow.
"""

import sys
from contextlib import AbstractContextManager
from typing import IO, Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.text import split_sentences
from keras_lstm_dssm.text_files import reading
from keras_lstm_dssm.tools.flags.keys import COMMAND_LINE, FLAGS

_LONGEST = 1 << 26


def main(pages: list[str]) -> dict[str, Any]:
    """Prints and returns the key sentences and key words of the page."""
    if len(pages) != 1:
        raise InputError(
            f"found {len(pages)} pages, expected one: give the path of a text "
            "file, or - for standard input"
        )
    sentences = split_sentences(read_page(pages[0]))
    model = load_keyvec(FLAGS.run)
    limit = model.max_sentences
    if limit is not None and len(sentences) > limit:
        print(
            f"the model reads the first {limit:,} of {len(sentences):,} "
            "sentences",
            file=sys.stderr,
        )
    key_sentences = model.key_sentences(sentences, FLAGS.sentences)
    key_words = model.key_words(sentences, FLAGS.words)
    for sentence, probability in key_sentences:
        print(f"{probability:.4f}  {sentence}")
    print()
    for word, probability in key_words:
        print(f"{probability:.4f}  {word}")
    return {
        "page": pages[0],
        "sentences": [
            {"sentence": sentence, "probability": probability}
            for sentence, probability in key_sentences
        ],
        "words": [
            {"word": word, "probability": probability}
            for word, probability in key_words
        ],
    }


def read_page(path: str) -> str:
    """Returns the text of a page.

    Args:
        path: A text file in UTF-8, or "-" for standard input.

    Raises:
        InputError: The file cannot be read, has no text, or more than 64 MB;
            or it has bytes that are no text in UTF-8.
    """
    source: AbstractContextManager[IO[bytes]] = (
        open(0, "rb", closefd=False) if path == "-" else reading(path)
    )
    with source as file:
        data = file.read(_LONGEST + 1)
    name = "standard input" if path == "-" else path
    if len(data) > _LONGEST:
        raise InputError(
            f"{name}: found more than {_LONGEST >> 20} MB, expected the text "
            "of one page: divide it"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name}:{line}: found invalid UTF-8 ({error.reason}), expected "
            "a text file: convert it to UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(
            f"{name}:{line}: found a NUL, as in binary files, expected a text "
            "file: convert it to text"
        )
    if not text.strip():
        raise InputError(f"{name}: found no text, expected that of a page")
    return text


def load_keyvec(run: str) -> KeyVec:
    """Loads the trained KeyVec of a run folder.

    Raises:
        InputError: The folder has no model, or one of another kind.
    """
    model = RunFolder(run).load_model()
    if not isinstance(model, KeyVec):
        raise InputError(
            f"{run}: found a {type(model).__name__}, expected the run of a "
            "KeyVec: train one with lstm-dssm-train --preset=keyvec"
        )
    return model


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
