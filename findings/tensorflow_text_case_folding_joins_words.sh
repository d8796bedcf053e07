#!/usr/bin/env bash
# tensorflow-text 2.21.1 with tensorflow 2.21.0; Python 3.11, Linux; run on 2026-11-28.
# `tensorflow_text.case_fold_utf8`, documented as case folding ("suitable for
# comparing strings"), of texts without capitals.
# Expected: only letters with a case change, as with Python's `str.casefold`.
# Seen: it computes Unicode's NFKC_Casefold: compatible forms are replaced, and
# characters that are ignorable by default are removed. The zero-width space U+200B
# is removed, though it separates words, so that two words become one; a soft hyphen
# and a word joiner are removed as well.
# Exit code: 0 while this is so, 1 if it has changed, 2 if the set-up failed.
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work" || exit 2
python3 -m venv env || exit 2
env/bin/pip install --quiet tensorflow-text==2.21.1 tensorflow==2.21.0 || exit 2
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
cat > check.py <<'END'
import sys

import tensorflow_text as tf_text

cases = {
    "hex\u200bbolt": "hexbolt",
    "hex\u00adbolt": "hexbolt",
    "ten\u2009\u339c": "ten mm",
}
folded = [
    text.decode() for text in tf_text.case_fold_utf8([*cases]).numpy().tolist()
]
for text, seen in zip(cases, folded, strict=True):
    print(ascii(text), "->", ascii(seen), "- Python:", ascii(text.casefold()))
unchanged = all(text.casefold() == text for text in cases)
sys.exit(not (unchanged and folded == [*cases.values()]))
END
env/bin/python check.py
