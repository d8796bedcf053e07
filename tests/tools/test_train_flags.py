"""lstm-dssm-train: what each flag sets, for all kinds of models.

Nothing is trained: a function takes the place of the training, and keeps what
it is given.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.models import find_recipe
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.tools.settings_flags import flag_names
from tests.kit.flags import last_of_each, name_of
from tests.settings.other_values import other_values

Configured = Callable[..., TrainingConfig]

# Changed field (of the options, or of the recipe) | flags | value of it
OPTIONS: list[tuple[str, str, Any]] = [
    ("data", "--data=other.tsv", "other.tsv"),
    ("dev", "--dev=api", "api"),
    ("select", "--select=ndcg@10", "ndcg@10"),
    ("every", "--every=2", 2),
    ("patience", "--patience=7", 7),
    ("min_relevant", "--min_relevant=2", 2),
    ("max_bad_lines", "--max_bad_lines=7", 7),
    ("init", "--init=RUN", "RUN"),
    ("seed", "--seed=5", 5),
    ("save_minutes", "--save_minutes=7", 7.0),
]
# Preset of a kind -> the options and values of recipes that are its own.
KINDS: dict[str, list[tuple[str, str, Any]]] = {
    "dssm": [
        ("validation", "--validation=more.tsv", "more.tsv"),
        ("teacher", "--preset=best_words --teacher=OLD --teacher=TEACH",
         "TEACH"),
        ("replay", "--init=RUN --replay=old.tsv:0.5", "old.tsv:0.5"),
        ("encoder_config", "--oov_buckets=5",
         {"units": [288, 96], "oov_buckets": 5}),
    ],
    "mv_lstm_tensor": [("negatives_from", "--negatives_from=RUN", "RUN")],
    "keyvec": [("salience", "--salience=lead", "lead")],
}  # fmt: skip
SETTINGS = {*train.program.settings.flags}
NEEDED = {"logq": "--negatives=in_batch "} | {
    f"mine_{name}": "--hard_negatives=1 "
    for name in ("every", "top", "clusters")
}
"""Field of a recipe -> flags without which it cannot be set."""


def rows_of(preset: str) -> list[tuple[str, str, Any]]:
    """Returns the rows of a kind; those of its recipe from its fields."""
    recipe = find_recipe(preset)
    others = other_values(type(recipe))
    rows = [*OPTIONS, *KINDS[preset]]
    for name in flag_names([type(recipe)]):
        value, preset_value = others[name], getattr(recipe, name)
        if isinstance(value, bool):
            value = not preset_value
        given = "--set=" if name in SETTINGS else "--"
        rows.append(
            (name, f"{NEEDED.get(name, '')}{given}{name}={value}", value)
        )
    return rows


ROWS = [(preset, *row) for preset in KINDS for row in rows_of(preset)]
OTHER_FLAGS = {
    "output", "resume", "json", "debug", "set",
    "workers", "ray_address", "worker_cpus", "start_minutes",  # of workers
}  # fmt: skip
NOT_STORED = ("--save_minutes=7",)


def run(output: Path, *flags: str) -> int:
    given = last_of_each(*flags)
    return train.program.run(["train", f"--output={output}", *given])


@pytest.fixture
def configured(tmp_path, monkeypatch) -> Configured:
    """Returns the options of the training that flags would begin."""
    given: dict[str, Any] = {}

    def keep(output: Path, **options: Any) -> None:
        given.clear()
        given.update(options)
        RunFolder(output).add_metrics("train", {"loss": 0.5})

    monkeypatch.setattr(dssm, "train", keep)
    monkeypatch.setattr(train, "next_command", lambda run: "")
    monkeypatch.chdir(tmp_path)

    def parse(*flags: str) -> TrainingConfig:
        output = tmp_path / "new"
        output.mkdir(exist_ok=True)
        assert run(output, "--data=api", *flags) == 0
        return TrainingConfig(**given)

    return parse


def write_config(config: TrainingConfig, run: Path) -> None:
    """Writes the `config.json` that a run of these options has."""
    run.mkdir(exist_ok=True)
    init = config.init and {"path": str(run.parent / config.init)}
    values = {**config.to_dict(), "init": init}
    (run / "config.json").write_text(json.dumps(values))
    RunFolder(run).add_metrics("train", {"loss": 0.5})


def test_the_table_has_every_flag():
    flags = {name_of(word) for _, _, words, _ in ROWS for word in words.split()}
    assert flags | OTHER_FLAGS == {*train.FLAGS, *SETTINGS}
    assert len(train.FLAGS) <= 40 and not {*train.FLAGS} & SETTINGS
    assert not flags & OTHER_FLAGS


@pytest.mark.parametrize(("preset", "field", "flags", "value"), ROWS)
def test_a_flag_sets_a_value_with_which_the_run_goes_on(
    preset, field, flags, value, configured, tmp_path, monkeypatch, refused
):
    """A run is resumed by the flags it was started with, and by no others."""
    *needed, flag = [f"--preset={preset}", *flags.split()]
    before, after = configured(*needed), configured(*needed, flag)
    if hasattr(before, field):
        assert getattr(before, field) != value
        assert after == before.replace(**{field: value})
    else:
        assert getattr(before.recipe, field) != value
        recipe = before.recipe.replace(**{field: value})
        assert after == before.replace(recipe=recipe)

    monkeypatch.setattr(dssm, "resume", lambda *_, **__: None)
    again = ["--resume", *needed, flag]
    write_config(after, tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert dssm.models.recipe_from_dict(stored["recipe"]) == after.recipe
    assert run(tmp_path / "run", *again) == 0
    write_config(before, tmp_path / "run")
    code = run(tmp_path / "run", *again)
    if flag in NOT_STORED:
        assert code == 0
    else:
        name = name_of(flag)
        value = train.program.flag(name).value
        refused(code, f"error: {train.program.shown(name)}={value}: the run in")


def test_a_preset_alone_is_its_recipe(configured):
    for preset in (*KINDS, "keyvec_mean", "lstm_64", "best"):
        found = configured(f"--preset={preset}")
        assert found == TrainingConfig("api", preset)
    assert not configured(
        "--preset=keyvec_mean", "--set=units=3"
    ).recipe.weighted
    assert configured().recipe == dssm.PRESETS["lstm_96"]


def test_the_recipe_is_that_of_the_run_to_continue(configured, trained_run):
    """With --init, and no --preset; its flags change values of it."""
    recipe = configured(f"--init={trained_run}", "--learning_rate=0.02").recipe
    assert recipe == dssm.PRESETS["lstm_32"].replace(
        epochs=3, batch_size=16, learning_rate=0.02
    )


def test_both_towers_have_the_rows_of_other_letters(configured):
    config = configured("--preset=dssm", "--oov_buckets=5")
    model = dssm.build_model(config.recipe)
    assert [tower.trigrams.oov_buckets for tower in model.towers] == [5, 5]
