"""Warns of click logs with letters outside the trigrams' alphabet."""

from collections import Counter

from keras_lstm_dssm.data.batches import training_batches
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.text import LETTERS, normalize

_SAMPLE = 10_000
_LEAST_SHARE = 0.01


def alphabet_warning(log: ClickLog) -> str | None:
    """Returns a warning if many words of a log are outside the alphabet.

    Without `oov_buckets` an encoder reads every letter but a to z and 0 to 9
    as `#`, so that words of other scripts differ in their length only. A
    random sample of 10,000 clicks of the log is examined.

    Args:
        log: The click log to sample.

    Returns:
        One line for the user; `None` if less than 1 % of the words have more
        letters outside the alphabet than inside.

    Example:
    >>> if line := alphabet_warning(log):
    ...     print(line)
    """
    batches = training_batches(log, _SAMPLE, epochs=1, seed=0)
    queries, titles = next(iter(batches))
    texts = [*queries.numpy().tolist(), *titles.numpy().tolist()]
    words = Counter(word for text in normalize(texts) for word in text.split())
    outside = Counter({w: n for w, n in words.items() if _is_outside(w)})
    share = outside.total() / words.total()
    if share < _LEAST_SHARE:
        return None
    examples = ", ".join(repr(word) for word, _ in outside.most_common(3))
    return (
        f"{share:.0%} of the words are in letters other than a-z (such as"
        f" {examples}), which encoders without oov_buckets cannot distinguish:"
        " set oov_buckets=8192 (--oov_buckets=8192)"
    )


def _is_outside(word: str) -> bool:
    letters = [letter in LETTERS for letter in word if letter.isalpha()]
    return 2 * sum(letters) < len(letters)
