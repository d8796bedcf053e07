"""CARD.md of a run: what was trained, on which data, how good it is."""

from collections.abc import Mapping
from typing import Any

from keras_lstm_dssm.cards.card_text import front_matter, table
from keras_lstm_dssm.cards.figures import figures_text, hub_result

_SCALAR = (str, int, float, bool)

KEYVEC = "KeyVec"

_LIMITS = """\
* The model repeats what its examples show, with the position bias of clicks.
* The intervals are over queries. Another seed changes the figures, too."""

_LIMITS_OF_KEYVEC = """\
* The model repeats what its teacher of key sentences chooses, with its errors.
* The intervals are over queries or runs of k-means. Another seed of the
  training changes the figures, too."""


def run_card(
    name: str, config: Mapping[str, Any], facts: Mapping[str, Any]
) -> str:
    """Returns the card of a run.

    Args:
        name: The run's name.
        config: Content of `config.json`.
        facts: Content of `card.json`.
    """
    kind = kind_of(config)
    evaluations = facts.get("evaluations", {})
    head: dict[str, Any] = {
        "library_name": "keras",
        "pipeline_tag": (
            "text-ranking"
            if kind in ("pair scorer", "ranker")
            else "sentence-similarity"
        ),
        "tags": ["keras", "keras-lstm-dssm", "tensorflow", "search"],
    }
    if evaluations:
        head["model-index"] = [
            {
                "name": name,
                "results": [
                    hub_result(key, entry) for key, entry in evaluations.items()
                ],
            }
        ]
    sections = [f"# {name}", f"A {kind}, trained by keras_lstm_dssm.", ""]
    sections += sections_of(config, facts)
    return front_matter(head) + "\n".join(sections) + "\n"


def sections_of(
    config: Mapping[str, Any], facts: Mapping[str, Any], level: int = 2
) -> list[str]:
    """Returns the sections of a card, in lines of Markdown.

    Args:
        config: Content of `config.json`.
        facts: Content of `card.json`.
        level: Level of the headings. Default 2.
    """
    mark = "#" * level
    training = facts.get("training", {})
    return [
        f"{mark} Training\n",
        table(["what", "value"], training_rows(config, training)),
        f"\n{mark} Figures\n",
        figures_text(facts.get("evaluations", {})),
        f"\n{mark} Limits\n",
        *_text_limits(config, training.get("texts", {})),
        _LIMITS_OF_KEYVEC if kind_of(config) == KEYVEC else _LIMITS,
        f"\n{mark} Recipe\n",
        table(["name", "value"], _recipe_rows(config)),
    ]


def kind_of(config: Mapping[str, Any]) -> str:
    """Returns what a run has trained, from its `config.json`."""
    if "ranker" in config:
        return "ranker"
    recipe = config.get("recipe", {})
    if not recipe:
        return "model"
    if "matcher" in recipe:
        return "pair scorer"
    if "encoder" in recipe:
        return "pair of encoders"
    return KEYVEC


def training_rows(
    config: Mapping[str, Any], training: Mapping[str, Any]
) -> list[list[Any]]:
    """Returns the rows of the table of a training: what, and its value.

    Args:
        config: Content of `config.json`.
        training: The training in `card.json`.
    """
    data = training.get("data", {})
    rows: list[list[Any]] = [
        ["version", config.get("version")],
        ["started", training.get("started")],
        ["finished", training.get("finished")],
        ["data", f"`{data.get('spec', config.get('data'))}`"],
        ["SHA-256 of the data", f"`{data['sha256']}`" if "sha256" in data
         else "the files could not be read"],
        ["files, bytes", f"{data['files']:,}, {data['bytes']:,}"
         if "files" in data else None],
        ["training examples", f"{config['pairs']:,}"
         if "pairs" in config else None],
        ["bad lines left out", config.get("bad_lines")],
        ["seed", config.get("seed")],
        ["best epoch chosen on", config.get("dev") and
         f"`{config['dev']}`, {config.get('select')}"],
        ["continued from", (config.get("init") or {}).get("path")],
    ]  # fmt: skip
    return [row for row in rows if row[1] is not None]


_LENGTHS = (
    ("query_words", "queries", "words"),
    ("title_words", "titles", "words"),
    ("sentences", "documents", "sentences"),
    ("sentence_words", "sentences", "words"),
)
"""The lengths on a card, such as the words of a title: the name in `card.json`,
the texts, and the parts that are counted in them."""


def _script_limit(texts: Mapping[str, Any]) -> str:
    read = (
        f"{texts['sample']:,} clicks"
        if "sample" in texts
        else (f"{texts['documents']:,} documents")
    )
    shares = ", ".join(
        f"{name.capitalize()} {100 * share:.1f} %"
        for name, share in list(texts["scripts"].items())[:5]
    )
    return (
        f"* Scripts of the letters in the first {read}: {shares or 'none'}. "
        "Others were not trained on."
    )


def _text_limits(
    config: Mapping[str, Any], texts: Mapping[str, Any]
) -> list[str]:
    lines = []
    recipe = config.get("recipe", {})
    arguments = {**recipe, **(recipe.get("encoder_config") or {})}
    if texts:
        lines.append(_script_limit(texts))
    for key, noun, parts in _LENGTHS:
        if key in texts:
            median, high = texts[key]
            lines.append(
                f"* Half of the {noun} have at most {median} {parts}, 99 % at "
                f"most {high}: longer ones are unlike what was trained on."
            )
    if not recipe:  # a ranker: its features are limited as their models are
        return lines
    if arguments.get("words", "trigrams") == "trigrams":
        if not arguments.get("oov_buckets"):
            lines.append(
                "* Letters other than a to z and digits are read as one "
                "(no `oov_buckets`): words of other scripts differ by their "
                "lengths only."
            )
    else:
        lines.append("* Words that no training text has are all read as one.")
    most = arguments.get("max_words") or 128
    if "max_sentences" in recipe:
        lines.append(
            f"* At most {recipe['max_sentences']} sentences of a document and "
            f"{most} words of a sentence are read."
        )
    else:
        lines.append(f"* At most {most} words of a text are read.")
    return lines


def _recipe_rows(config: Mapping[str, Any]) -> list[list[Any]]:
    values: dict[str, Any] = dict(config.get("recipe", {}))
    values |= config.get("ranker", {}).get("options", {})
    nested = [v for v in values.values() if isinstance(v, Mapping)]
    for inner in nested:
        values |= inner
    return [
        [name, f"`{value}`"]
        for name, value in values.items()
        if isinstance(value, _SCALAR)
    ]
