"""Splits by query: nothing that is judged is trained on."""

import gzip
import hashlib
import random
from collections import Counter

import pytest

from keras_lstm_dssm.data import ClickLog, Collection, click_grades
from keras_lstm_dssm.data.click_pages import ClickPages
from keras_lstm_dssm.data.split import (
    joined,
    near_duplicates,
    split_log,
    split_pages,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import normalize


@pytest.fixture
def log(tmp_path) -> ClickLog:
    """1,000 queries, each written in two ways and clicked 1 to 5 times."""
    for part, query in enumerate(["query ", "QUERY  "]):
        (tmp_path / f"{part}.tsv").write_text(
            "".join(
                f"{query}{i}\ttitle {(i + click) % 300}\n"
                for i in range(1000)
                for click in range(part, i % 5 + 1, 2)
            )
        )
    return ClickLog(f"{tmp_path}/*.tsv")


def words(query: str) -> str:
    return " ".join(query.lower().split())


def test_each_click_is_in_one_split(log, tmp_path):
    split_log(log, tmp_path / "new", dev_percent=10, test_percent=20)
    collection = Collection(tmp_path / "new")
    assert collection.splits == ("dev", "test")
    clicks: dict[str, Counter[str]] = {}
    for query, title in log:
        clicks.setdefault(words(query), Counter())[title] += 1
    training = Counter(
        (words(pair.query), pair.document) for pair in collection.training_log()
    )
    queries = {}
    for split in collection.splits:
        qrels = collection.qrels(split)
        queries[split] = [words(collection.queries[q]) for q in qrels]
        for query, grades in zip(queries[split], qrels.values(), strict=True):
            by_title = {collection.documents[d]: g for d, g in grades.items()}
            assert by_title == click_grades(clicks.pop(query))
    # What is not judged is trained on, each click as often as it was made.
    assert training == Counter(
        {(q, t): n for q, counts in clicks.items() for t, n in counts.items()}
    )
    # Both ways to write a query are one query, of one split.
    parts = [{query for query, _ in training}, *map(set, queries.values())]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 1000
    assert len(collection.queries) == sum(map(len, queries.values()))
    assert 70 < len(queries["dev"]) < 130 and 160 < len(queries["test"]) < 240
    titles = list(collection.documents.values())
    assert titles == list(log.documents()) and len(titles) == 300


def test_the_same_on_every_machine(log, tmp_path):
    split_log(log, tmp_path / "new")
    digest = hashlib.sha256()
    files = sorted(p for p in (tmp_path / "new").rglob("*") if p.is_file())
    assert len(files) == 5
    for file in files:
        data = file.read_bytes()
        digest.update(gzip.decompress(data) if file.suffix == ".gz" else data)
    assert digest.hexdigest()[:16] == "368c1f767d03cc2c"


def test_no_test_query_has_the_words_of_a_training_query(tmp_path):
    """As runs of letters and digits, which `best` reads."""
    spellings = ["query {}", "QUERY-{}", "(query) {}!", "query/{}"]
    (tmp_path / "log.tsv").write_text(
        "".join(
            f"{spelling.format(i)}\ttitle {i}\n"
            for i in range(100)
            for spelling in spellings
        )
    )
    collection = split_log(ClickLog(tmp_path / "log.tsv"), tmp_path / "new")
    parts = [
        {pair.query for pair in collection.training_log()},
        *(
            {collection.queries[query] for query in collection.qrels(split)}
            for split in collection.splits
        ),
    ]
    normalized = [set(normalize(part, "alphanumeric")) for part in parts]
    assert sum(map(len, normalized)) == len(set.union(*normalized)) == 100
    # The encoders that split at spaces distinguish three of the four.
    assert sum(map(len, parts)) == 400


def test_texts_are_one_line_and_blank_ones_left_out(tmp_path):
    lines = [" a  b c\u3000d\tThe\u2028title", "\u00a0\tx", "read 3 files\ty"]
    lines += ["sort a list\t z \x1c z", "sort a list\t\u3000"]
    (tmp_path / "log.tsv").write_text("\n".join(lines))
    log = ClickLog(tmp_path / "log.tsv")
    collection = split_log(log, tmp_path / "new", 3, 9)
    assert collection.documents == {"d1": "The title", "d2": "y", "d3": "z z"}
    assert collection.queries == {"q1": "a b c d", "q2": "read 3 files"}
    assert collection.qrels("test") == {"q1": {"d1": 4}}
    assert list(collection.training_log()) == [("sort a list", "z z")]


def test_percentages(log, tmp_path):
    for percents in ((-1, 10), (0, 0), (50, 50)):
        with pytest.raises(InputError, match="expected 0 or more each, and"):
            split_log(log, tmp_path / "new", *percents)
    with pytest.raises(InputError, match="found 100 % for dev, expected 0"):
        split_pages(ClickPages.__new__(ClickPages), tmp_path, 100, 10, 1.0)
    collection = split_log(log, tmp_path / "new", dev_percent=0)
    assert collection.splits == ("test",)


@pytest.mark.parametrize(
    ("percents", "split"), [((1, 10), "dev"), ((11, 1), "test"), ((6, 6), "")]
)
def test_a_log_that_is_too_small(tmp_path, percents, split):
    lines = "a b c d\tx\nread 3 files\ty\n" + "sort a list\tz\n" * bool(split)
    (tmp_path / "log.tsv").write_text(lines)
    log, expected = ClickLog(tmp_path / "log.tsv"), split or "train"
    with pytest.raises(InputError, match=f"no query for the split {expected}"):
        split_log(log, tmp_path / "new", *percents)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("clicks", "grades"), [
    ([], []),
    ([0, 0], [0, 0]),
    ([1], [4]),
    ([1, 1, 1], [4, 4, 4]),
    ([2, 1], [4, 3]),
    ([30, 20, 10, 10], [4, 3, 3, 3]),
    ([573, 300, 100, 1, 0], [4, 3, 2, 1, 0]),
    # 69 %, 31 % and 12 % of the most clicked document.
    ([10_000, 6876, 6875, 3105, 3104, 1219, 1218], [4, 4, 3, 3, 2, 2, 1]),
])  # fmt: skip
def test_grades_by_share_of_the_most_clicked(clicks, grades):
    by_id = {f"d{index}": count for index, count in enumerate(clicks)}
    assert list(click_grades(by_id).values()) == grades
    assert list(click_grades(by_id)) == list(by_id)


def test_near_duplicates_equal_a_comparison_of_all_pairs():
    rng = random.Random(0)
    texts = [
        " ".join(rng.choices("abcdefgh", k=rng.randrange(1, 9)))
        for _ in range(200)
    ]

    def index(one: str, other: str) -> float:
        first, second = set(one.split()), set(other.split())
        return len(first & second) / len(first | second)

    for share in (0.5, 0.75, 1.0):
        expected = {
            (i, j)
            for i in range(len(texts))
            for j in range(i)
            if index(texts[i], texts[j]) >= share
        }
        found = list(near_duplicates(texts, share))
        assert set(found) == expected and len(found) == len(expected) > 100


def test_groups_are_joined_in_any_order():
    joins = [(3, 4), (5, 6), (4, 6), (1, 0)]
    for order in (joins, joins[::-1]):
        assert joined(8, order) == [0, 0, 2, 3, 3, 3, 3, 7]
