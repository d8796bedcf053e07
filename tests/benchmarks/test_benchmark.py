"""`make benchmark` as a user runs it, with small sizes and models."""

import json
from pathlib import Path
from typing import Any

import pytest

import keras_lstm_dssm.data as data_package
from benchmarks import __main__ as benchmark
from benchmarks import measure, retriever, serving, towers, word_models
from keras_lstm_dssm.data import Triples
from tests.benchmarks.conftest import compare_here
from tests.tools.conftest import refused, write_graded

__all__ = ["refused"]  # a fixture

pytestmark = pytest.mark.usefixtures("small_towers")


def run(*arguments: str) -> int:
    return benchmark.program.run(["benchmarks", *arguments])


def figures(folder: Path, suites: str, *flags: str) -> dict[str, Any]:
    path = folder / "out.json"
    assert not run(
        f"--suite={suites}", "--batch_size=16", "--steps=1", "--rounds=1",
        f"--json={path}", *flags,
    )  # fmt: skip
    return json.loads(path.read_text())


@pytest.fixture
def few_forms(monkeypatch) -> None:
    """Measures few sizes, and each in this process.

    The training of one Keras peer is measured, and the encoding of the other:
    both give the same vectors, see test_towers.py. Where `train` is measured
    in processes, `encode` has them for PyTorch and JAX only.
    """
    left_out = iter(["keras_padded", "keras_segments"])
    contenders = towers.contenders
    compare, compared_here = towers.compare, iter([[], [measure.__name__]])

    def without_one(*arguments: Any) -> dict[str, Any]:
        found = contenders(*arguments)
        del found[next(left_out)]
        return found

    def partly_here(
        given: dict[str, measure.Contender], work: str, rounds: int
    ) -> Any:
        modules = next(compared_here)
        here = {n: c for n, c in given.items() if c.command[2] in modules}
        there = {n: c for n, c in given.items() if n not in here}
        taken, chosen = compare(there, work, rounds)
        taken_here, chosen_here = compare_here(here, work, rounds)
        return taken | taken_here, chosen | chosen_here

    def in_process(_: str, method: str, folder: str, count: str) -> Any:
        return retriever.measure_search(method, Path(folder), int(count))

    monkeypatch.setattr(towers, "contenders", without_one)
    monkeypatch.setattr(towers, "compare", partly_here)
    monkeypatch.setattr(retriever, "results_of_process", in_process)
    monkeypatch.setattr(serving, "_CALLS", 1)
    for name, sizes in (
        ("CELL_COUNTS", (4,)), ("TITLE_WORDS", (2,)), ("BATCH_FACTORS", ()),
    ):  # fmt: skip
        monkeypatch.setattr(towers, name, sizes)


def check_positive(value: dict[str, Any]) -> None:
    """All figures are above 0."""
    for each in value.values():
        if isinstance(each, dict):
            check_positive(each)
        elif isinstance(each, int | float):
            assert each > 0, value


def test_figures_of_prepare(tmp_path):
    found = figures(tmp_path, "prepare", "--clicks_in_log=30000")["prepare"]
    check_positive(found)
    ratio = found["prepare"] / found["statement"]
    assert found["ratio"] == pytest.approx(ratio)


@pytest.mark.usefixtures("few_forms")
def test_figures_of_suites(collection_folder, tmp_path):
    results = figures(
        tmp_path, "train,encode,serve,batch,retriever,profile",
        f"--data={collection_folder}", "--titles=4", "--queries=6",
        "--titles_in_index=120",
    )  # fmt: skip
    machine, train, encode, serve, batch, search, profile = results.values()
    assert machine["cpu"] and machine["cores"] >= 1
    for suite, unit in (
        (train, "pairs_per_second"),
        (encode, "titles_per_second"),
    ):
        ours, peer = suite["ours"][unit], suite["keras"][unit]
        assert suite["ratio_keras"] == pytest.approx(ours / peer)
    assert train["environments"]["ours"] == "one thread, malloc"
    assert encode["environments"]["ours"] == "here"
    assert 0 < train["limit_fraction"] < 1
    assert encode["ratio_exported"] > 0
    for way in ("in_process", "grpc"):
        assert 0 < serve[way]["p50_ms"] <= serve[way]["p99_ms"]

    assert search.keys() == {"float32", "int8", "numpy", "make_seconds"}
    exact, rounded, by_numpy, _ = search.values()
    for method in (exact, rounded, by_numpy):
        # Here all are measured in one process, which need not grow for each.
        for growth in ("resident_megabytes", "peak_megabytes"):
            assert isinstance(method.pop(growth), float)
    for suite in (batch, search, profile):
        check_positive(suite)
    assert list(batch) == ["query_encoder", "retriever"]
    for sizes in batch.values():
        assert list(sizes) == ["rows_1", "rows_8", "rows_64", "rows_512"]
        for name, each in sizes.items():
            rows = int(name.removeprefix("rows_"))
            rate = pytest.approx(1000 * rows / each["ms"])
            assert each["rows_per_second"] == rate

    for method in (exact, rounded, by_numpy):
        for size in ("batch_1", "batch_32"):
            assert method[size]["p50_ms"] <= method[size]["p99_ms"]
    assert exact["recall@10"] == 1
    assert 0.7 < rounded["recall@10"] <= 1
    assert rounded["recall@100"] > 0.9
    ratio = by_numpy["batch_1"]["p50_ms"] / rounded["batch_1"]["p50_ms"]
    assert rounded["ratio_numpy"]["batch_1"] == ratio
    # 120 vectors of 16 numbers, less the scales.
    less = exact["disk_megabytes"] - rounded["disk_megabytes"]
    assert less == pytest.approx(120 * (16 * 3 - 4) / 1e6, rel=0.05)

    assert profile["cells"].keys() == {"4"}
    assert profile["words"].keys() == {"2"}
    assert profile["batch_size"] == {}
    assert profile["parts"].keys() >= {
        "matrix products", "words to trigrams", "rows of tables and words",
        "loss and accuracy",
    }  # fmt: skip


@pytest.mark.parametrize(("flags", "message"), [
    ("--suite=train,sing", "all, or some of train, encode, serve, load"),
    ("--suite=", "all, or some of train, encode, serve, load"),
    ("--suite=load,documents --triples=9", "--triples is for --suite=matching"),
    ("--suite=load --clients=8,", "--clients=8,: expected numbers separa"),
    ("--data=nowhere.tsv", "nowhere.tsv"),
    ("--data={folder} --rounds=1", "give a smaller --batch_size"),
    ("--suite=documents --data={folder}", "documents.jsonl"),
    ("--data=api_documents", "found documents of many sentences"),
])  # fmt: skip
def test_what_is_refused(flags, message, collection_folder, refused):
    words = flags.format(folder=collection_folder).split()
    refused(run(*words), message)


def test_the_data_of_documents(collection_folder, tmp_path, monkeypatch):
    """`documents` reads --data only without other suites: they read clicks."""
    monkeypatch.setattr(data_package, "open_documents", lambda spec: spec)
    monkeypatch.setattr(
        word_models, "measure_documents", lambda *read: {"read": read}
    )
    monkeypatch.setattr(serving, "measure_serving", lambda *_: {"p50": 1})
    data = f"--data={collection_folder}"
    _, alone = figures(tmp_path, "documents", "--data=pages").values()
    assert alone["read"] == ["pages", 32, 1, 1]
    _, default = figures(tmp_path, "documents", "--documents=4").values()
    assert default["read"] == ["api_documents", 4, 1, 1]
    _, serve, beside = figures(tmp_path, "serve,documents", data).values()
    assert (serve["p50"], beside["read"][0]) == (1, "api_documents")


def test_triples_have_judged_negatives_where_there_are_some(
    collection_folder, tmp_path, monkeypatch
):
    """The benchmark of pair scorers trains on judged documents, or on clicks.

    A triple is a query, a relevant document and a negative. Where the data
    have documents judged irrelevant, these are the negatives; otherwise a
    negative is a title drawn at random for each click.
    """
    measured: list[tuple[Any, ...]] = []

    def measure(triples: Triples, *effort: int) -> dict[str, int]:
        measured.append((triples.describe(), *effort))
        return {"lists": triples.lists}

    monkeypatch.setattr(word_models, "measure_matching", measure)
    graded = write_graded(tmp_path / "graded")
    for data, lists in ((graded, 12), (collection_folder, 6)):
        flags = f"--data={data}", "--triples=4"
        _, matching = figures(tmp_path, "matching", *flags).values()
        assert matching == {"lists": lists}
    of_grades, of_clicks = measured
    assert of_grades[1:] == of_clicks[1:] == (4, 1, 1)
    # Of three titles with grades for each query, and one without.
    assert of_grades[0].startswith("36 triples of 12 queries; 14 positives")
    # Of 120 clicks with four random titles each.
    assert of_clicks[0] == "480 triples of 6 queries"
