import gzip

import ir_measures
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    evaluate_queries,
    mean,
    read_run,
    write_run,
)
from keras_lstm_dssm.evaluation.runs import TieBreaker

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
    write_run(tmp_path / "run.trec", RUN, "model")
    (tmp_path / "qrels.trec").write_text(
        "".join(
            f"{query} 0 {document} {grade}\n"
            for query, judged in QRELS.items()
            for document, grade in judged.items()
        )
    )
    measures = {
        ir_measures.nDCG(gains={1: 1, 2: 3, 3: 7, 4: 15}) @ 10: "ndcg@10",
        ir_measures.RR(rel=2) @ 10: "mrr@10",
        ir_measures.AP(rel=2): "map",
        ir_measures.P(rel=2) @ 10: "p@10",
        ir_measures.R(rel=2) @ 10: "recall@10",
    }
    found = ir_measures.calc_aggregate(
        list(measures),
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.trec"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run.trec"))),
    )
    ours = mean(evaluate_queries(RUN, QRELS, min_relevant=2))
    assert {name: found[m] for m, name in measures.items()} == pytest.approx(
        {name: ours[name] for name in measures.values()}, abs=1e-9
    )


def test_lines(tmp_path):
    path = tmp_path / "run.trec"
    write_run(path, {"q1": {"b": 1.5, "a": 0.0}}, "bm25")
    assert path.read_text() == "q1 Q0 b 1 1.5 bm25\nq1 Q0 a 2 0 bm25\n"
    assert [item.name for item in tmp_path.iterdir()] == ["run.trec"]


def test_read_run_gives_back_what_was_written(tmp_path):
    write_run(tmp_path / "run.trec", RUN)
    again = read_run(tmp_path / "run.trec")
    assert [*again] == [*RUN]
    for query_id, ranked in RUN.items():
        assert list(again[query_id].items()) == list(ranked.items())


def test_runs_may_be_compressed(tmp_path):
    for name in ("run.trec", "a.trec.gz", "b.trec.gz"):
        write_run(tmp_path / name, RUN)
    data = (tmp_path / "a.trec.gz").read_bytes()
    assert gzip.decompress(data) == (tmp_path / "run.trec").read_bytes()
    # The name and the time are not part of the file.
    assert data == (tmp_path / "b.trec.gz").read_bytes()
    assert read_run(tmp_path / "a.trec.gz") == read_run(tmp_path / "run.trec")


def test_read_run_orders_by_score(tmp_path):
    path = tmp_path / "run.trec"
    path.write_text("q Q0 low 1 -1e-3 x\nq Q0 high 2 1e3 x\n")
    assert [*read_run(path)["q"]] == ["high", "low"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 d 1 2.5\n", r"run.trec:1: found 'q Q0 d 1 2.5', expected"),
        ("q Q0 d 1 2 x\n\nq Q0 e 2 ? x\n", ":3: found 'q Q0 e 2 . x'"),
        ("q Q0 d 1 nan x\n", ":1: found 'q Q0 d 1 nan x'"),
        (
            "q Q0 d 1 2 x\nq Q0 d 2 1 x\n",
            ":2: found document d twice for query q, expected it once",
        ),
    ],
)
def test_read_run_names_the_line(tmp_path, text, message):
    path = tmp_path / "run.trec"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_run(path)


def test_white_space_is_refused(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(InputError, match="cannot write document id 'd 1'"):
        write_run(path, {"q": {"d 1": 1.0}})
    with pytest.raises(InputError, match="cannot write query id ''"):
        write_run(path, {"": {"d": 1.0}})
    with pytest.raises(InputError, match="cannot write tag 'my model'"):
        write_run(path, {"q": {"d": 1.0}}, "my model")
    with pytest.raises(InputError, match=r"cannot write query id 'q\\t'"):
        write_run(path, {"q\t": {"d": 1.0}})
    assert not list(tmp_path.iterdir())
