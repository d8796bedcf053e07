"""Documents made of docstrings of our own making."""

import itertools
import pathlib
import random

import pytest

from keras_lstm_dssm.data import DocumentFolder, api_documents
from keras_lstm_dssm.data.api_documents import (
    package_class,
    write_api_documents,
)
from keras_lstm_dssm.data.api_sources import Definition
from keras_lstm_dssm.text import normalize

WORDS = [a + b + c for a in "bdfkm" for b in "aeiou" for c in "lnrst"]


def sentence(rng: random.Random, words: int = 9) -> str:
    return " ".join(rng.sample(WORDS, words)).capitalize() + "."


def made() -> list[Definition]:
    """60 modules in 4 packages, of 4 docstrings each."""
    rng = random.Random(1)
    named = [("top", "src"), ("top", "beta"), ("top", "_hidden"), ("other",)]
    packages = [".".join(parts) for parts in named]
    definitions = [
        Definition("top", "", "The package which contains three others."),
        Definition("top.src", "", "Too short."),
        Definition("top.beta", "", f"{sentence(rng)}\n\n{sentence(rng)}"),
        Definition("top._hidden", "", ""),
        Definition("other", "", "Says nothing that any other one says."),
    ]
    for number in range(60):
        module = f"{packages[number % 4]}.m{number}"
        definitions.append(Definition(module, "", "A module."))
        for item in range(4):
            body = [sentence(rng) for _ in range(8 + item)]
            doc = f"{sentence(rng)}\n\n" + " ".join(body)
            definitions.append(Definition(module, f"f{item}", doc))
    first, second = definitions[6].doc, definitions[11].doc
    shared = first.split("\n\n")[1].split(". ")[0]
    near = second.split("\n\n")[1].split(". ")[0]
    definitions += [
        # A sentence of m0, and nearly one of m1.
        Definition("top.beta.m9", "g", f"{sentence(rng)}\n\n{shared}. "
                   + " ".join(sentence(rng) for _ in range(8))),
        Definition("top.beta.m17", "g", f"{sentence(rng)}\n\n{near} indeed. "
                   + " ".join(sentence(rng) for _ in range(8))),
        Definition("other.m3", "again", first),
    ]  # fmt: skip
    return definitions


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> DocumentFolder:
    path = tmp_path_factory.mktemp("data") / "documents"
    return write_api_documents(path, made())


def test_what_is_in_a_document(tmp_path):
    body = [f"It has the {name} part." for name in "abcdefg"]
    doc = (
        "Sorts the `items` of a list.\nIt is stable.\n\n"
        + " ".join(body)
        + "\n\nSorts the items of a list. It has the A part.\n\nArgs:\n"
        "    key: Gives the order of\n        two items. Default is none.\n"
        "    others : list of int\n        The other items.\n\n"
        ">>> sort_the_items_of_it()\nThis is the output of it.\n"
    )
    short = "Sorts the items.\n\n" + " ".join(body)
    folder = write_api_documents(
        tmp_path / "new",
        [Definition("pack.a", "sort", doc), Definition("pack.b", "no", short)],
    )
    (document,) = folder
    assert document.title == "pack.a sort"
    assert document.summary == ["Sorts the items of a list.", "It is stable."]
    assert document.sentences == [
        *body,
        "Gives the order of two items.",
        "Default is none.",
        "The other items.",
    ]
    assert document.label == "pack" and document.split == "train"
    assert folder.splits == ()


def test_boilerplate_is_left_out(tmp_path):
    rng = random.Random(0)
    definitions = [
        Definition(
            "m", f"f{number}",
            f"{sentence(rng)}\n\nIn every one, of six.\n\n"
            + ("In five of the six. " if number else "")
            + " ".join(sentence(rng) for _ in range(8)),
        )
        for number in range(6)
    ]  # fmt: skip
    documents = list(write_api_documents(tmp_path / "new", definitions))
    assert [len(one.sentences) for one in documents] == [8, 9, 9, 9, 9, 9]
    assert documents[1].sentences[0] == "In five of the six."


def test_no_sentence_is_in_two_splits(folder):
    texts: dict[str, set[str]] = {}
    modules: dict[str, set[str]] = {}
    for one in folder:
        texts.setdefault(one.split, set()).update(one.summary, one.sentences)
        modules.setdefault(one.split, set()).add(one.title.split()[0])
    words = {
        split: set(normalize(sorted(of_split), "alphanumeric"))
        for split, of_split in texts.items()
    }
    assert words.keys() == {"train", "dev", "test"}
    for one, other in itertools.combinations(words, 2):
        assert not words[one] & words[other]
        assert not modules[one] & modules[other]
    for together in (
        {"top.src.m0", "top.beta.m9"},
        {"top.beta.m1", "top.beta.m17"},
    ):
        assert any(together <= of_split for of_split in modules.values())
    assert folder.count() == 242  # one docstring occurs twice
    assert 36 <= folder.count("test") <= 48 and 12 <= folder.count("dev") <= 24


def test_classes_and_queries(folder):
    documents = {one.id: one for one in folder}
    assert set(folder.counts.classes) == {"top", "top.beta", "other"}
    for split in ("dev", "test"):
        for query, grades in folder.qrels(split).items():
            (label,) = {documents[key].label for key in grades}
            text = folder.queries[query]
            assert text.startswith("Says") == (label == "other")
            assert text.startswith("The package") == (label == "top")
            assert grades == {
                key: 1
                for key, one in documents.items()
                if one.label == label and one.split == split
            }
    assert len(folder.qrels("test")) == 3
    # The docstring of a package that is a query is no document.
    assert all(one.title.count(" ") for one in documents.values())


@pytest.mark.parametrize(
    ("module", "label"),
    [
        ("a.b.c", "a.b"),
        ("a.b", "a.b"),
        ("a.src.b._c", "a.b"),
        ("a._d.e", "a"),
        ("a.b.f.g", "a.b"),
        ("_single", "single"),
    ],
)
def test_package_class(module, label):
    packages = {"a", "a.b", "a.src", "a.src.b", "a._d", "a.b.f"}
    assert package_class(module, packages) == label


def test_it_is_built_once_in_the_cache(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(api_documents, "distributions", lambda: [])
    monkeypatch.setattr(api_documents, "documented", made)
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(tmp_path))
    built = api_documents.build_api_documents(progress=True)
    printed = capsys.readouterr().err.splitlines()
    assert printed[0].startswith("Reading docstrings (once")
    assert printed[1].startswith("242 documents, ")
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("api_documents-")
    monkeypatch.delattr(api_documents, "documented")
    again = api_documents.build_api_documents(progress=True)
    assert capsys.readouterr().err == ""
    assert list(again) == list(built) == list(folder)
    for name in ("documents.jsonl.gz", "queries.jsonl.gz", "qrels/test.tsv"):
        first = pathlib.Path(folder.folder) / name
        assert first.read_bytes() == (path / name).read_bytes()
