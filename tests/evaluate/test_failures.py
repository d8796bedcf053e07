"""The verdict of an evaluation, and the queries on which a model fails."""

import json

import duckdb
import pytest

from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.data.statistics import query_clicks
from keras_lstm_dssm.evaluate.failures import (
    compare_with_bm25,
    find_failures,
    tell_failures,
)
from keras_lstm_dssm.evaluate.titles import measured_systems, with_mode
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.settings.programs import TitleSettings

TITLES = {"a": "anvil", "b": "bolt", "c": "clamp <b>", "d": "drill"}
QUERIES = {f"q{n}": f"query {n}" for n in range(10)}


class First(System):
    """Ranks one title first for the queries of a set, and last for others."""

    def __init__(self, best: str, queries: set[str]) -> None:
        self.best, self.queries = best, queries

    def list_scores(self, queries, candidates, documents):
        return {
            q: {d: float((d == self.best) == (q in self.queries)) for d in ids}
            for q, ids in candidates.items()
        }

    def retrieve(self, queries, documents, depth):
        ids = dict.fromkeys(queries, list(documents))
        run = self.rerank(queries, ids, documents)
        return {q: dict(list(of.items())[:depth]) for q, of in run.items()}


def measured_of(
    model: set[str],
    bm25: set[str],
    lines: list[str],
    mixture: set[str] | None = None,
):
    """Measures systems that find `a` for some of the queries."""
    task = Task(QUERIES, TITLES, {q: {"a": 1} for q in QUERIES}, depth=2)
    systems = {"model": First("a", model), "bm25": First("a", bm25)}
    settings, ranked = TitleSettings(mode="retrieve"), "model"
    if mixture is not None:
        ranked, systems["mixture"] = "mixture", First("a", mixture)
    return measured_systems(task, systems, ranked, {}, settings, lines.append)


def test_the_verdict_names_chance():
    """A sign test by hand: of n wins without a loss, p = 2 / 2^n."""
    for wins, p, sentence in (
        (10, 2 / 2**10, "The model is better than BM25: mrr@10 100.00 against"
         " 0.00 (+100.00 ± 0.00, 10 queries); this is not chance (p = 0.002)"),
        (4, 2 / 2**4, "The model does not differ significantly from BM25:"
         " mrr@10 40.00 against 0.00 (+40.00 ± 32.01, 10 queries); this may be"
         " chance (p = 0.125)"),
    ):  # fmt: skip
        model = {f"q{n}" for n in range(wins)}
        verdict = compare_with_bm25(measured_of(model, set(), []))
        assert verdict["p"] == pytest.approx(p)
        assert verdict["sentence"] == sentence
        assert verdict["difference"] == pytest.approx(wins / 10)
    verdict = compare_with_bm25(measured_of(set(), set(QUERIES), []))
    assert verdict["sentence"].startswith("The model is worse than BM25")
    equal = compare_with_bm25(measured_of({"q1"}, {"q1"}, []))
    assert (equal["p"], equal["sentence"]) == (
        1, "The model is as good as BM25 for each query: mrr@10 10.00, 10"
        " queries",
    )  # fmt: skip


def test_a_mixture_that_is_worse_than_its_model_is_told():
    for found, told in (set(QUERIES), False), ({"q3"}, True):
        lines: list[str] = []
        measured = measured_of({"q1", "q2"}, set(), lines, found)
        tell_failures(measured, {}, TitleSettings(queries=1), lines.append)
        sentence = (
            "The model alone is better than the mixture here: mrr@10 20.00"
            " against 10.00"
        )
        assert (sentence in lines) == told


def test_failing_queries_and_the_page(tmp_path):
    lines: list[str] = []
    measured = measured_of(set(QUERIES) - {"q3", "q4"}, {"q3"}, lines)
    clicks = {query: 1.0 for query in QUERIES} | {"q4": 5.0, "q0": 9.0}
    page = tmp_path / "page.html"
    settings = TitleSettings(queries=2, html=page)
    told = tell_failures(measured, clicks, settings, lines.append)
    failures = json.loads(json.dumps(told))["failures"]
    assert failures == told["failures"]
    # Of equally bad queries, the more frequent one is first.
    assert [e["query"] for e in failures["worst"]] == ["query 4", "query 3"]
    assert [e["query"] for e in failures["frequent"]] == ["query 0", "query 4"]
    worst, frequent = failures["worst"][0], failures["frequent"][0]
    assert (worst["mrr@10"], worst["rank"], worst["clicks"]) == (0, None, 5)
    assert worst["clicked"] == ["anvil"] and "anvil" not in worst["found"]
    assert len(worst["found"]) == 2
    assert (frequent["mrr@10"], frequent["rank"]) == (1, 1)
    # 9 and 5 of 22 clicks: the two most frequent have half of them.
    assert failures["head"]["queries"] == 2
    assert failures["head"]["model"] == pytest.approx(1 / 2)
    assert failures["tail"]["queries"] == 8
    assert failures["tail"]["model"] == pytest.approx(7 / 8)
    assert failures["on_pages"][0] == {"title": "anvil", "share": 0.8}
    text = "\n".join(lines)
    assert "head (2 most frequent queries" in text
    assert "is on 80.0 % of the pages of 10 results: anvil" in text
    assert "   0.00  none  query 4  (5 clicks)" in text
    assert "clicked: anvil" in text
    assert lines[2] == "\n" + told["verdict"]["sentence"]
    html = page.read_text()
    for part in (told["verdict"]["sentence"], "query 4", "Worst queries"):
        assert part in html
    assert "clamp &lt;b&gt;" in html and "<b>" not in html


def test_without_numbers_of_clicks():
    lines: list[str] = []
    measured = measured_of({"q0"}, set(), lines)
    found = find_failures(measured, {}, 20)
    assert len(found["worst"]) == 9  # the tenth has nothing to mend
    assert set(found) == {"measure", "worst", "on_pages"}


@pytest.mark.parametrize(
    ("grades", "mode"), [({"a": 1, "b": 0}, "rerank"), ({"a": 1}, "retrieve")]
)
def test_the_mode_is_that_of_the_judgements(grades, mode, tmp_path):
    data = write_collection(
        tmp_path / "data", TITLES, QUERIES, {"test": {"q1": grades}}, []
    )
    assert with_mode(TitleSettings(), data).mode == mode
    assert with_mode(TitleSettings(hybrid=True), data).mode == "retrieve"
    given = TitleSettings(mode="rerank")
    assert with_mode(given, data) is given


def test_numbers_of_clicks_of_queries(tmp_path):
    """From judgements that are such numbers, or from the logs of `prepare`."""
    qrels = {"test": {"q1": {"a": 7, "b": 2}, "q2": {"b": 1}}}
    data = write_collection(tmp_path / "a", TITLES, QUERIES, qrels, [])
    assert query_clicks(data, "test") == {"q1": 9, "q2": 1}
    qrels = {"test": {"q1": {"a": 1}, "q2": {"b": 1}}}
    data = write_collection(tmp_path / "b", TITLES, QUERIES, qrels, [])
    assert query_clicks(data, "test") == {}
    (tmp_path / "b/log").mkdir()
    duckdb.execute(
        "COPY (FROM (VALUES ('Query  1', 2.0), ('query 1 ', 1.5), ('x', 9.0),"
        " ('query 2', 0.0)) AS t(q, weight)) TO "
        f"'{tmp_path}/b/log/0001.parquet' (FORMAT parquet)"
    )
    assert query_clicks(data, "test") == {"q1": 3.5, "q2": 0}
