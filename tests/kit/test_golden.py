"""Remembered SavedModels are those that would be written, and no others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.encoders.hybrid_encoder import HybridEncoder
from keras_lstm_dssm.export import export_model
from keras_lstm_dssm.export.bulk.documents import DocumentRows
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.export.graphs.keyvec import KeyVecModule
from keras_lstm_dssm.export.graphs.retriever import RetrieverModule
from keras_lstm_dssm.export.graphs.scorer import ScorerModule
from keras_lstm_dssm.export.publish import versions
from keras_lstm_dssm.models.word_builders import build_scorer
from tests.kit.golden import (
    copied_or_written,
    files_digest,
    graph_key,
    remembered_graphs,
)
from tests.models.small_keyvec import small_keyvec


def test_a_copy_is_what_would_be_written(tmp_path, monkeypatch):
    """Byte for byte, and nothing is written for a second time."""
    encoder = dssm.DSSMEncoder([3])
    calls: list[str] = []
    for name in ("save_module", "write_warmup"):
        real = getattr(versions, name)

        def counted(*arguments: Any, real: Any = real, name: str = name) -> Any:
            calls.append(name)
            return real(*arguments)

        monkeypatch.setattr(versions, name, counted)
    golden = tmp_path / "golden"
    with remembered_graphs(golden):
        first = export_model(encoder, tmp_path / "encoder")
        assert calls == ["save_module", "write_warmup"]
        calls.clear()
        second = export_model(encoder, tmp_path / "encoder")
        assert calls == []
        assert second.name == "2"
        assert files_digest(first) == files_digest(second)
        versions.verify_manifest(second)
        # Changes of a copy are no changes of what is remembered.
        (second / "saved_model.pb").write_bytes(b"damaged")
        third = export_model(encoder, tmp_path / "encoder")
        assert files_digest(third) == files_digest(first)
        # The name stands in the warm-up requests.
        export_model(encoder, tmp_path / "other")
        assert calls == ["write_warmup"]
        # A weight that has changed.
        calls.clear()
        weight = encoder.weights[-1]
        weight.assign(weight + 1e-6)
        fourth = export_model(encoder, tmp_path / "encoder")
        assert calls == ["save_module", "write_warmup"]
        assert files_digest(fourth) != files_digest(first)
        # One that fails now was never remembered.
        weight.assign(weight * np.nan)
        with pytest.raises(dssm.InputError, match="not finite"):
            export_model(encoder, tmp_path / "encoder")
    calls.clear()
    export_model(dssm.DSSMEncoder([3]), tmp_path / "encoder")
    assert calls == ["save_module", "write_warmup"]


SCORER = dssm.ScorerRecipe("RecurrentCosine", {"units": 2}, word_dimension=4)


def rows(ids: str, shift: float = 0.0, tags: Any = ()) -> DocumentRows:
    vectors = np.eye(len(ids), 3, dtype=np.float32) + np.float32(shift)
    return DocumentRows(list(ids), vectors, tags)


def test_whatever_changes_a_graph_changes_its_key():
    encoder = dssm.DSSMEncoder([3])
    module = EncoderModule(encoder)
    tagged = [["x"], ["y"]]
    modules = [
        module,
        EncoderModule(dssm.DSSMEncoder([3])),  # other weights
        EncoderModule(dssm.DSSMEncoder([3], dtype="float64")),
        RetrieverModule(module, rows("ab")),
        RetrieverModule(module, rows("ba")),
        RetrieverModule(module, rows("abc")),
        RetrieverModule(module, rows("ab", 1e-6)),
        RetrieverModule(module, rows("ab"), "int8"),
        RetrieverModule(module, rows("ab"), max_k=1),
        RetrieverModule(module, rows("ab", tags=tagged)),
        RetrieverModule(module, rows("ab", tags=tagged[::-1])),
        KeyVecModule(small_keyvec()),
        KeyVecModule(small_keyvec(weighted=False)),
        *(
            ScorerModule(build_scorer(SCORER, 0, words))
            for words in (["a"], ["b"])
        ),
        ScorerModule(build_scorer(SCORER.with_matcher(units=3), 0, ["a"])),
    ]
    keys = [graph_key(each) for each in modules]
    assert None not in keys
    assert len({*keys}) == len(keys)
    assert graph_key(EncoderModule(encoder)) == keys[0]
    assert graph_key(RetrieverModule(module, rows("ab"))) == keys[3]


def test_other_graphs_are_always_written():
    hybrid = HybridEncoder({"towers": dssm.DSSMEncoder([3])}, {"towers": 1.0})
    assert graph_key(EncoderModule(hybrid)) is None


def test_what_could_not_be_written_is_not_remembered(tmp_path):
    golden, target = tmp_path / "kept" / "golden", tmp_path / "target"

    def fail(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").write_text("x")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        copied_or_written(golden, target, fail)
    assert not target.exists() and [*golden.parent.iterdir()] == []
    copied_or_written(golden, target, Path.mkdir)
    assert [*target.iterdir()] == []
