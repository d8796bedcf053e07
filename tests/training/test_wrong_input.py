"""What `dssm.train` refuses: one line, and no folder."""

from pathlib import Path

import pytest

import keras_lstm_dssm as dssm
from tests.kit.kinds import KEYVEC, SCORER
from tests.training.small_trainings import QUICK

CLICKS = "clicks.tsv"

ROWS = [
    # Data | recipe | options | message
    ("nowhere.tsv", QUICK, {}, "nowhere.tsv: no such file"),
    ("faulty.tsv", QUICK, {}, "faulty.tsv:2: found no tab"),
    ("empty.tsv", QUICK, {}, "empty.tsv"),
    ("faulty.tsv", SCORER, {}, "faulty.tsv:2: found no tab"),
    ("blank.tsv", SCORER, {}, "blank.tsv:1: found"),
    (["a.tsv", "b.tsv"], QUICK, {}, "pair 0 is 'a.tsv', expected a query and"),
    (["ab", "cd"], QUICK, {}, "pair 0 is 'ab', expected a query and a clicked"),
    ([("bolt", "hex bolt"), ("glue", None)], QUICK, {}, "pair 1 is .'glue', N"),
    (5, QUICK, {}, r"found 5 \(int\), expected clicks: paths of files, or pai"),
    (CLICKS, "gru", {}, "unknown preset 'gru'"),
    (CLICKS, {"encoder": "LSTMEncoder"}, {}, "unknown preset {'encoder': 'LST"),
    (CLICKS, QUICK, {"output": ""}, "output is '': expected the folder of the"),
    (CLICKS, QUICK, {"select": "map"}, "select is not used without dev: leave"),
    (CLICKS, QUICK, {"every": 2}, "every is not used without dev: leave it"),
    (CLICKS, QUICK, {"patience": 2}, "patience is not used without dev: leave"),
    (CLICKS, QUICK, {"titles": CLICKS}, "titles is 'clicks.tsv': expected a l"),
    (CLICKS, QUICK, {"titles": ["a", 5]}, r"titles is \['a', 5\]: expected a"),
    (CLICKS, QUICK, {"judged": {"a": ["b"]}}, "judged is not used without jud"),
    (CLICKS, QUICK.replace(judged_negatives=1), {"judged": {"a": "bolt"}},
     r"judged\['a'\] is 'bolt': expected a list of texts"),
    (CLICKS, QUICK.replace(judged_negatives=1), {"judged": ["a"]},
     r"judged is \['a'\]: expected a dict, query -> titles"),
    (CLICKS, QUICK, {"validation": ["a.tsv"]}, "validation is .'a.tsv'.: expe"),
    (CLICKS, QUICK, {"dev": "nowhere"}, "nowhere: found nothing there, expec"),
    (CLICKS, QUICK, {"dev": CLICKS}, "found a file, expected 'api', "),
    (CLICKS, QUICK, {"dev": "judged", "select": "mrr@7"}, "select is 'mrr@7'"),
    (CLICKS, QUICK, {"dev": "judged", "patience": 0}, "patience is 0: expect"),
    (CLICKS, QUICK, {"validation": "nowhere.tsv"}, "nowhere.tsv: no such file"),
    (CLICKS, QUICK, {"validation": Path("none.tsv")}, "none.tsv: no such fi"),
    (CLICKS, QUICK, {"validation": "faulty.tsv"}, "faulty.tsv:2: found no tab"),
    (CLICKS, QUICK, {"salience": "lead"}, "salience is used by KeyVecs only"),
    (CLICKS, QUICK, {"negatives_from": "PARENT"}, "used by pair scorers only"),
    (CLICKS, QUICK, {"init": "nothing"}, "nothing: no model here"),
    (CLICKS, QUICK, {"replay": "old.tsv:0.1"}, "replay mixes old clicks into"),
    (CLICKS, None, {"init": "PARENT", "replay": "old.tsv"},
     "replay is 'old.tsv': expected old clicks, a colon and a share"),
    (CLICKS, QUICK, {"teacher": "TEACH"}, "teacher is used by word_sum and be"),
    (CLICKS, "best_words", {}, "teacher is missing: expected the folder of"),
    (CLICKS, SCORER, {"titles": ["a"]}, "titles is used by two towers only"),
    (CLICKS, SCORER, {"judged": {"a": ["b"]}}, "judged is used by two towers"),
    (CLICKS, SCORER, {"teacher": "TEACH"}, "teacher is used by two towers"),
    (CLICKS, SCORER, {"init": "PARENT", "replay": "clicks.tsv:1"},
     "replay is used by two towers only"),
    (CLICKS, SCORER, {"validation": CLICKS}, "validation is used by two"),
    (CLICKS, SCORER, {"negatives_from": "none"}, "none: no model here"),
    ("judged", SCORER, {"negatives_from": "PARENT"}, "has judged negatives"),
    ("documents", KEYVEC, {"salience": "bm52"}, "salience is 'bm52': found no"),
    ("documents", KEYVEC, {"titles": ["a"]}, "titles is used by two towers on"),
    ("documents", KEYVEC, {"validation": "x.tsv"}, "two towers only: leave it"),
    ("documents", KEYVEC, {"patience": -1}, "patience is -1: expected a whole"),
    ("documents", KEYVEC, {"dev": "documents", "select": "p@7"}, "is 'p@7'"),
    ("documents", QUICK, {}, "found documents of many sentences, expected"),
    ("documents", SCORER, {}, "found documents of many sentences, expected"),
    ("api_documents", QUICK, {}, "train a KeyVec on them"),
    ("api", KEYVEC, {}, "expected 'api_documents' or a folder of documents"),
    ("nowhere", KEYVEC, {}, "found nothing there, expected 'api_documents'"),
    (CLICKS, KEYVEC, {}, "found a file, expected 'api_documents' or"),
    ([("a", "b")], KEYVEC, {}, "learns from documents: found list, expected"),
    ("judged", KEYVEC, {}, r"documents\.jsonl: no such file"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def faulty(kinds_data):
    """Adds files that are wrong to the data."""
    Path("faulty.tsv").write_text("hex bolt\tsteel hex bolt\nno tab here\n")
    Path("empty.tsv").touch()
    Path("blank.tsv").write_text("rope\t \n")


@pytest.mark.parametrize(("data", "recipe", "options", "message"), ROWS)
def test_wrong_input_leaves_no_folder(data, recipe, options, message):
    with pytest.raises(dssm.InputError, match=message) as error:
        dssm.train(data, recipe, **{"output": "run", "verbose": 0, **options})
    assert "\n" not in str(error.value)
    assert not Path("run").exists()
