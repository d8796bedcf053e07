"""The checks of exports find ops, and run graphs without Python."""

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from tests.export import agreement
from tests.serving.tiny_models import save_function


def test_ops_of_tf_text_are_not_found_without_its_libraries(tiny_models):
    """Else the loader might run by TensorFlow's Python."""
    message = "TF_LoadSessionFromSavedModel: code 5: .*Op type not registered"
    with pytest.raises(agreement.CppError, match=message):
        agreement.run_in_cpp(
            {tiny_models / "query_encoder" / "2": []}, text_ops=False
        )


def test_ops_are_found_in_graph_and_functions(tiny_models):
    ops = agreement.serving_ops(tiny_models / "query_encoder" / "1")
    # The graph's own, and those of the function that it calls.
    assert {"Placeholder", "StatefulPartitionedCall"} <= ops
    assert {"CaseFoldUTF8", "StringLength", "AddV2"} <= ops
    assert not [name for name in ops if name.startswith("__inference")]


def test_ops_that_older_servers_lack_are_reported(tmp_path):
    def trim(text: tf.Tensor) -> dict[str, tf.Tensor]:
        words = tf.strings.split(text)
        first = tf_text.RoundRobinTrimmer(3).trim([words])[0]
        return {"words": first.to_tensor()}

    save_function(tmp_path, trim, text="string")
    missing = agreement.serving_ops(tmp_path) - agreement.stock_ops()
    assert {name[:17] for name in missing} == {"TFText>RoundRobin"}


def test_the_list_is_that_of_2_12():
    ops = agreement.stock_ops()
    assert {"MatMul", "TopKV2", "StringSplitV2", "VarHandleOp"} <= ops
    # Later additions, as TensorFlow itself might put into a graph.
    assert not {"Conv", "RaggedFillEmptyRows", "SegmentMaxV2"} & ops
    assert len(ops) == 1659 + len(agreement.TEXT_OPS)
