"""docs/mathematics.md names the choices in force."""

import pathlib
import re

from keras_lstm_dssm.models import KEYVEC_PRESETS, SCORER_PRESETS
from keras_lstm_dssm.training.document_targets import KEY_WORDS
from keras_lstm_dssm.training.salience import MAX_SALIENT

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "mathematics.md").read_text()


def test_the_choices_that_the_papers_leave_open_are_those_of_the_presets() -> (
    None
):
    found = re.findall(
        r"^## Choices that ([^\n]+) leave open\n(.+?)(?=^## |\Z)",
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
    choices = {paper: " ".join(text.split()) for paper, text in found}
    assert list(choices) == ["Palangi et al.", "Wan et al.", "Bi and Ma"]
    scorer = SCORER_PRESETS["mv_lstm_tensor"]
    cntn = SCORER_PRESETS["cntn"]
    for words in (
        f"{scorer.skip_gram_epochs} passes of skip-gram",
        f"{scorer.epochs} epochs of {scorer.batch_size} triples",
        f"learning rate is {scorer.learning_rate}",
        f"CNTN {cntn.learning_rate}",
        f"first {scorer.max_words} words",
    ):
        assert words in choices["Wan et al."], words
    keyvec = KEYVEC_PRESETS["keyvec"]
    printed = KEYVEC_PRESETS["keyvec_printed"]
    for words in (
        "Adam in place of SGD",
        f"{keyvec.learning_rate}, falling to 0 over {keyvec.epochs} epochs",
        f"{printed.learning_rate} without an end, in at most {printed.epochs}",
        f"patience of {printed.patience}",
        f"batches of {keyvec.batch_size}",
        f"{keyvec.skip_gram_epochs} passes of skip-gram "
        f"(`keyvec_printed`: {printed.skip_gram_epochs})",
        f"{keyvec.min_count} times or more, at most {keyvec.vocabulary_size:,}",
        f"1 to {keyvec.excerpt} sentences",
        f"{keyvec.key_word_start:g} times",
        f"K is {MAX_SALIENT}",
        f"fewer than {KEY_WORDS} words",
    ):
        assert words in choices["Bi and Ma"], words
