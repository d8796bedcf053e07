"""Raw strings to words: clean, normalise, fold case, split."""

import tensorflow as tf
import tensorflow_text as tf_text

EMPTY_TEXT = "#"
"""The one word of a text without words; its only trigram is `###`."""


SPLITS = ("space", "alphanumeric")
"""Where words end; see `split_words`."""


def split_words(
    texts: tf.Tensor, max_words: int | None = None, split: str = "space"
) -> tf.Tensor:
    """Splits texts into normalised words.

    Invalid UTF-8 becomes U+FFFD, compatible forms are unified (NFKC), case
    is folded, invisible code points (soft hyphens, zero-width joiners) are
    dropped, and words are what stands between Unicode white space: the
    paper's treatment (section V: "whitespace tokenized and lower-cased,
    numbers are retained, and no stemming"). A text without words gets the
    one word `#`, so that every text has a vector.

    Args:
        texts: String tensor `[batch]`, any bytes.
        max_words: Words kept of each text, the first ones; `None` for all.
        split: `"space"`, the paper's; or `"alphanumeric"`, where words are
            runs of letters, digits and marks, and all else is a space.

    Returns:
        `tf.RaggedTensor` of strings, `[batch, (words)]`, at least one word
        a row.

    Example:
    >>> split_words(tf.constant(["Hotels in  Shanghai", ""])).to_list()
    [[b'hotels', b'in', b'shanghai'], [b'#']]
    """
    valid = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace"
    )
    folded = tf_text.case_fold_utf8(tf_text.normalize_utf8(valid, "NFKC"))
    # The tokenizer cuts the bytes of these four in two; NFKC has made plain
    # spaces of all other white space.
    spaced = tf.strings.regex_replace(folded, "[\u0085\u1680\u2028\u2029]", " ")
    if split == "alphanumeric":
        spaced = tf.strings.regex_replace(spaced, r"[^\pL\pN\pM]+", " ")
    words = tf_text.WhitespaceTokenizer().tokenize(spaced)
    if max_words is not None:
        words = words[:, :max_words]
    blank = tf.cast(tf.equal(words.row_lengths(), 0), tf.int64)
    filler = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(blank)], EMPTY_TEXT), blank, validate=False
    )
    return tf.concat([words, filler], axis=1)
