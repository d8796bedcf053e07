"""Only a model of an equal file, with the weights of the file, is lent."""

import shutil

import keras
import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.run_folder import RunFolder
from tests.kit.loaded import Loaded, remembered_runs
from tests.tools.conftest import saved_run
from tests.training.small_trainings import QUICK

TEXTS = ["hex bolt", ""]


def test_a_remembered_model_is_that_of_the_file(tmp_path):
    model = dssm.build_model(QUICK, 5)
    run = saved_run(tmp_path / "run", model)
    vectors = dssm.load_run(run).query_encoder.encode(TEXTS)
    loaded: Loaded = {}
    with remembered_runs(loaded):
        first = dssm.load_run(run)
        np.testing.assert_array_equal(
            first.query_encoder.encode(TEXTS), vectors
        )
        copy = shutil.copytree(run, tmp_path / "copy")
        assert dssm.load_run(copy) is first
        first.query_encoder.set_weights(
            [weight + 1 for weight in first.query_encoder.get_weights()]
        )
        second = dssm.load_run(run)
        assert second is not first and dssm.load_run(copy) is second
        np.testing.assert_array_equal(
            second.query_encoder.encode(TEXTS), vectors
        )
        # The file of another model, other precision, a checkpoint.
        RunFolder(copy).save_model(first)
        changed = dssm.load_run(copy)
        assert changed is not first and changed is not second
        assert changed.query_encoder.encode(TEXTS).tolist() != vectors.tolist()
        keras.config.set_dtype_policy("mixed_bfloat16")
        try:
            assert dssm.load_run(run) is not second
        finally:
            keras.config.set_dtype_policy("float32")
        saved = RunFolder(run)
        assert saved.load_checkpoint() is not saved.load_checkpoint()
        # A damaged file, and one that is not there.
        saved.model.write_bytes(saved.model.read_bytes()[:-9])
        with pytest.raises(dssm.InputError, match="not a model this version"):
            dssm.load_run(run)
        saved.model.unlink()
        with pytest.raises(dssm.InputError, match="no model here"):
            dssm.load_run(run)
    assert dssm.load_run(copy) is not changed
