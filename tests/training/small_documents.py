"""A folder of few documents, and a recipe that is quick to train on it."""

from pathlib import Path

from keras_lstm_dssm import KeyVecRecipe
from keras_lstm_dssm.data import Document, DocumentFolder, write_documents

WORDS = {
    "wear": "hat coat shoe wool scarf glove belt".split(),
    "tools": "hose pump saw nail drill lamp glue".split(),
}
QUICK_KEYVEC = KeyVecRecipe(
    word_dimension=4, min_count=1, filters=2, windows=(2,), units=2,
    dimension=3, epochs=3, patience=3, batch_size=4,
)  # fmt: skip
SPLITS = {"train": 10, "dev": 4, "test": 4}


def document(number: int, label: str, split: str) -> Document:
    """Makes a document of 4 to 6 sentences, whose summary is the second."""
    words = WORDS[label]
    sentences = [
        " ".join(words[(number + step * place) % 7] for step in (1, 2, 3))
        for place in range(1, 5 + number % 3)
    ]
    key = f"{split}-{label}-{number}"
    return Document(key, "", sentences, [sentences[1]], label, split)


def documents(splits: dict[str, int] = SPLITS) -> list[Document]:
    """Makes documents of both classes in turn, as many of each split."""
    return [
        document(number, list(WORDS)[number % 2], split)
        for split, count in splits.items()
        for number in range(count)
    ]


def write_small_documents(folder: Path) -> DocumentFolder:
    """Writes the documents, and a query for each class of dev and test."""
    everything = documents()
    qrels = {
        split: {
            f"q-{label}": {
                one.id: 1
                for one in everything
                if (one.split, one.label) == (split, label)
            }
            for label in WORDS
        }
        for split in ("dev", "test")
    }
    queries = {f"q-{label}": " ".join(WORDS[label][:3]) for label in WORDS}
    return write_documents(folder, everything, queries, qrels)
