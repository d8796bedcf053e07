"""Print the key sentences and the key words of a page.

The page is a text file, compressed by gzip if it ends in .gz, or - for
standard input. The sentences with the largest probability of being key come
first, then the words that the page's vector predicts best; these need not
occur in the page. Each line has a probability, two spaces, and the sentence or
word.

Example:
  lstm-dssm-keys --run=KEYVEC_RUN page.txt
  lstm-dssm-keys --run=KEYVEC_RUN --sentences=3 --words=5 - < page.txt
"""

import sys
from contextlib import AbstractContextManager
from typing import IO, Any

from keras_lstm_dssm.command_line import Program, printable
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text_files import reading

program = Program(__doc__, required=["run"], arguments=True)
FLAGS = program.flags
program.string(
    "run", None, "Folder of the run of a KeyVec that lstm-dssm-train wrote."
)
program.integer("sentences", 5, "Number of key sentences.", 1)
program.integer("words", 10, "Number of key words.", 1)


_LONGEST = 1 << 26


def main(pages: list[str]) -> dict[str, Any]:
    """Prints and returns the key sentences and key words of the page."""
    from keras_lstm_dssm.models.kinds import KEYVEC, kind_of
    from keras_lstm_dssm.run_folder import RunFolder
    from keras_lstm_dssm.text import split_sentences

    if len(pages) != 1:
        raise InputError(
            f"found {len(pages)} pages, expected one: give the path of a text "
            "file, or - for standard input"
        )
    sentences = split_sentences(read_page(pages[0]))
    model = RunFolder(FLAGS.run).load_model()
    if kind_of(model) is not KEYVEC:
        raise InputError(
            f"{FLAGS.run}: found a {type(model).__name__}, expected the run of "
            "a KeyVec: train one with lstm-dssm-train --preset=keyvec"
        )
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
        print(f"{probability:.4f}  {printable(sentence)}")
    print()
    for word, probability in key_words:
        print(f"{probability:.4f}  {printable(word)}")
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
    """Returns the text of a page."""
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


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
