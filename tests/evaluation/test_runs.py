"""Rankings without ties, and the files of runs."""

import gzip

import ir_measures
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_lstm_dssm import evaluation
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.runs import (
    TieBreaker,
    kth_largest,
    strictly_descending,
)

TINY = float(np.finfo(np.float32).tiny)
SCORES = st.lists(
    st.sampled_from([-2.0, -TINY, -0.0, 0.0, 1e-40, TINY, 0.5, 1.0])
    | st.floats(-(2.0**99), 2.0**99, width=32),
    min_size=1,
    max_size=20,
)


@given(SCORES)
@example([TINY, TINY, 0.0, -0.0, -TINY, -TINY])
def test_strictly_descending(values):
    scores = np.sort(np.array(values, np.float32))[::-1]
    strict = strictly_descending(scores)
    assert strict.dtype == np.float32
    assert (np.diff(strict.astype(np.float64)) < 0).all()
    # No subnormal numbers: some readers take them for zero.
    assert ((strict == 0) | (np.abs(strict) >= TINY)).all()
    normal = (np.abs(scores) >= TINY) | (scores == 0)
    if len(set(scores)) == len(scores) and normal.all():
        np.testing.assert_array_equal(strict, scores)


def test_strictly_descending_moves_by_single_steps():
    below, lower = 1 - 2.0**-24, 1 - 2.0**-23
    scores = np.array([1, 1, below, 0.5], np.float32)
    assert strictly_descending(scores).tolist() == [1, below, lower, 0.5]


@given(SCORES, st.randoms(), st.integers(1, 25))
def test_no_order_of_the_input_helps(values, random, depth):
    scores = {f"d{i}": score for i, score in enumerate(values)}
    shuffled = list(scores)
    random.shuffle(shuffled)
    ranked = TieBreaker(list(scores)).rank("q", values)
    again = TieBreaker(shuffled).rank("q", [scores[i] for i in shuffled], depth)
    assert list(ranked.items())[:depth] == list(again.items())
    single = {i: np.float32(score) for i, score in scores.items()}
    order = [single[i] for i in ranked]
    assert order == sorted(order, reverse=True)


def test_ties_have_one_fixed_order_for_each_query():
    ids = [f"d{i}" for i in range(6)]
    orders = [[*TieBreaker(ids).rank(q, [0.0] * 6)] for q in ("q1", "q2", "é")]
    assert [" ".join(order) for order in orders] == [
        "d5 d4 d3 d0 d1 d2", "d3 d0 d1 d4 d5 d2", "d0 d4 d3 d5 d2 d1",
    ]  # fmt: skip


def test_ties_are_fair():
    ranker = TieBreaker([f"d{i}" for i in range(4)])
    first = [next(iter(ranker.rank(f"q{i}", [1.0] * 4))) for i in range(4000)]
    counts = [first.count(f"d{i}") for i in range(4)]
    assert all(abs(count - 1000) < 110 for count in counts), counts


def test_positions_name_the_documents():
    ranked = TieBreaker(["a", "b", "c"]).rank(
        "q", [1.0, 2.0], positions=np.array([2, 0])
    )
    assert ranked == {"a": 2.0, "c": 1.0}
    assert list(ranked) == ["a", "c"]
    empty = TieBreaker(["a"]).rank("q", [], 5, np.array([], np.intp))
    assert empty == {}
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="query q7: a score is not finit"):
            TieBreaker(["a", "b"]).rank("q7", [0.0, bad])


@pytest.mark.parametrize(("n", "k"), [(3, 5), (50, 7), (6403, 100), (20000, 3)])
def test_kth_largest(n, k):
    """Groups of many scores are compared first."""
    random = np.random.default_rng(n)
    for scores in (random.normal(size=n), random.integers(0, 9, n)):
        scores = scores.astype(np.float32)
        scores[random.integers(0, n, n // 3)] = -np.inf
        expected = -np.inf if k >= n else np.sort(scores)[-k]
        assert kth_largest(scores, k) == expected
        assert kth_largest(scores, None) == -np.inf
    scores[2:] = -np.inf
    assert kth_largest(scores, k) == -np.inf


IDS = [f"d{i:02}" for i in range(30)]
QRELS = {
    f"q{q}": {d: (i * 7 + q) % 5 for i, d in enumerate(IDS[q:])}
    for q in range(9)
}
# Many ties, at zero and elsewhere: readers must see the same order.
RUN = {
    q: TieBreaker(IDS).rank(q, [(i % 4) / 3 for i in range(30)]) for q in QRELS
}


def test_ir_measures_reads_the_same(tmp_path):
    evaluation.write_run(tmp_path / "run.trec", RUN, "model")
    (tmp_path / "qrels.trec").write_text(
        "".join(
            f"{query} 0 {document} {grade}\n"
            for query, judged in QRELS.items()
            for document, grade in judged.items()
        )
    )
    ndcg = ir_measures.nDCG(gains={1: 1, 2: 3, 3: 7, 4: 15})
    measures = {
        ndcg @ 3: "ndcg@3", ndcg @ 5: "ndcg@5", ndcg @ 10: "ndcg@10",
        ir_measures.RR(rel=2) @ 10: "mrr@10", ir_measures.RR(rel=2): "mrr",
        ir_measures.AP(rel=2): "map", ir_measures.P(rel=2) @ 10: "p@10",
        ir_measures.R(rel=2) @ 10: "recall@10",
    }  # fmt: skip
    found = ir_measures.calc_aggregate(
        list(measures),
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.trec"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run.trec"))),
    )
    names = tuple(measures.values())
    ours = evaluation.mean(
        evaluation.evaluate_queries(RUN, QRELS, min_relevant=2, names=names)
    )
    theirs = {name: found[measure] for measure, name in measures.items()}
    assert theirs == pytest.approx(ours, abs=1e-9)


def test_a_run_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "run.trec"
    path.write_text("q Q0 low 1 -1e-3 x\nq Q0 high 2 1e3 x\n")
    assert [*evaluation.read_run(path)["q"]] == ["high", "low"]
    evaluation.write_run(path, {"q1": {"b": 1.5, "a": 0.0}}, "bm25")
    assert path.read_text() == "q1 Q0 b 1 1.5 bm25\nq1 Q0 a 2 0 bm25\n"
    assert [item.name for item in tmp_path.iterdir()] == ["run.trec"]
    for name in ("run.trec", "a.trec.gz", "b.trec.gz"):
        evaluation.write_run(tmp_path / name, RUN)
        again = evaluation.read_run(tmp_path / name)
        assert [(q, *of.items()) for q, of in again.items()] == [
            (q, *of.items()) for q, of in RUN.items()
        ]
    data = (tmp_path / "a.trec.gz").read_bytes()
    assert gzip.decompress(data) == path.read_bytes()
    # The name and the time are not part of the file.
    assert data == (tmp_path / "b.trec.gz").read_bytes()


@pytest.mark.parametrize(("run", "tag", "message"), [
    ({"q": {"d 1": 1.0}}, "tag", "cannot write document id 'd 1'"),
    ({"": {"d": 1.0}}, "tag", "cannot write query id ''"),
    ({"q\t": {"d": 1.0}}, "tag", r"cannot write query id 'q\\t'"),
    ({"q": {"d": 1.0}}, "my model", "cannot write tag 'my model'"),
])  # fmt: skip
def test_white_space_is_refused(tmp_path, run, tag, message):
    with pytest.raises(InputError, match=message):
        evaluation.write_run(tmp_path / "out", run, tag)
    assert not list(tmp_path.iterdir())
