"""title_pairs: practice where there are no clicks, titles and parts of them."""

import random
from collections.abc import Iterable, Iterator

from keras_lstm_dssm.data.bad_lines import Pair
from keras_lstm_dssm.data.misspelling import misspell

_LONGEST = 4  # words, as queries have


def title_pairs(
    titles: Iterable[str],
    each: int = 1,
    seed: int = 0,
    misspelled: float = 0.2,
) -> Iterator[Pair]:
    """Yields some words of a title as a query, and the title as its click.

    Trained on beside the clicks, they teach the words of titles that nobody
    has clicked yet: which titles hold them, and which of a title's words stand
    for the others.

    One to four of the words are drawn, never all, and keep their order; some
    are then misspelled, as people do. Titles of a single word are left out.
    What is drawn is a function of the seed and the titles in their order.

    Args:
        titles: The titles.
        each: Pairs for each title.
        seed: Any int.
        misspelled: Probability for each word; see `misspell`.

    Example:
    >>> list(title_pairs(["rubber garden hose"], misspelled=0.0))
    [Pair(query='rubber garden', document='rubber garden hose')]
    """
    draw = random.Random(seed)
    for title in titles:
        words = title.split()
        if len(words) < 2:
            continue
        for _ in range(each):
            count = draw.randint(1, min(_LONGEST, len(words) - 1))
            places = sorted(draw.sample(range(len(words)), count))
            query = " ".join(words[i] for i in places)
            # A seed of its own each time: the same words, other errors.
            errors = draw.getrandbits(32)
            yield Pair(misspell(query, misspelled, errors), title)
