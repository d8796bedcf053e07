import pathlib

from keras_lstm_dssm.data import ClickLog, Pair, title_pairs, with_pairs

TITLES = ["a b c d e f", "lamp", "garden hose"]


def test_some_words_of_a_title_in_their_order() -> None:
    pairs = list(title_pairs(TITLES, 200, misspelled=0.0))
    assert len(pairs) == 400
    lengths = set()
    for query, title in pairs[:200]:
        words = query.split()
        assert title == TITLES[0] and words == sorted(set(words))
        assert set(words) <= set(title.split())
        lengths.add(len(words))
    assert lengths == {1, 2, 3, 4}
    # Never all of a title's words; a title of one word has no part.
    assert {pair.query for pair in pairs[200:]} == {"garden", "hose"}


def test_some_of_the_words_are_misspelled() -> None:
    titles = ["rubber garden hoses", "galvanised angle bracket"]
    words = [
        word
        for query, title in title_pairs(titles, 1000)
        for word in query.split()
        if word not in title.split()
    ]
    # One or two words a query, a fifth of them hit, each in its own way.
    assert 450 < len(words) < 750
    assert len(set(words)) > 100


def test_the_draw_is_of_the_seed() -> None:
    one = list(title_pairs(TITLES, 5, seed=1))
    assert one == list(title_pairs(iter(TITLES), 5, seed=1))
    assert one != list(title_pairs(TITLES, 5, seed=2))


def test_beside_the_clicks_of_a_log(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "clicks.tsv"
    path.write_text("hose\tgarden hose\n")
    log = with_pairs(
        ClickLog(path, max_bad_lines=3),
        [Pair("naïve  lamp", "a lamp")],
        tmp_path / "more.tsv",
    )
    assert list(log) == [("hose", "garden hose"), ("naïve lamp", "a lamp")]
    assert log.max_bad_lines == 3
