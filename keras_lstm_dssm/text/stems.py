"""Stems of English words, in the graph."""

import tensorflow as tf

# A word of a text ends with a space or with the text.
_ENDINGS = (
    (r"([^ea ])ies( |$)", r"\1y\2"),
    (r"(x|ch|sh|ss|z)es( |$)", r"\1\2"),
    (r"([^us ])s( |$)", r"\1\2"),
    (r"(\pL{4})(?:ing|ed)( |$)", r"\1\2"),
)


def cut_endings(texts: tf.Tensor) -> tf.Tensor:
    """Removes English endings of plurals and of verbs from all words.

    The rules are those of the S stemmer (Harman 1991, "How effective is
    suffixing?"), and -es, -ing and -ed. They are few, so that a graph can
    apply them; the result need not be a word, only the same for the forms of
    a word.

    Args:
        texts: Strings of any shape: normalised words, single spaces between
            them.

    Example:
    >>> cut_endings(tf.constant(["batteries", "lighting boxes"])).numpy()
    array([b'battery', b'light box'], dtype=object)
    """
    for ending, replacement in _ENDINGS:
        texts = tf.strings.regex_replace(texts, ending, replacement)
    return texts
