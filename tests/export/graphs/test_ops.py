import tensorflow as tf
import tensorflow_text as tf_text

from tests.export.ops import TEXT_OPS, serving_ops, stock_ops


def test_ops_are_found_in_graph_and_functions(tiny_models):
    ops = serving_ops(tiny_models / "query_encoder" / "1")
    # The graph's own, and those of the function that it calls.
    assert {"Placeholder", "StatefulPartitionedCall"} <= ops
    assert {"CaseFoldUTF8", "StringLength", "AddV2"} <= ops
    assert not [name for name in ops if name.startswith("__inference")]


def test_ops_that_older_servers_lack_are_reported(tmp_path):
    class Trim(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def trim(self, text: tf.Tensor) -> tf.Tensor:
            words = tf.strings.split(text)
            return tf_text.RoundRobinTrimmer(3).trim([words])[0].to_tensor()

    module = Trim()
    tf.saved_model.save(module, str(tmp_path), signatures=module.trim)
    missing = serving_ops(tmp_path) - stock_ops()
    assert missing and all(
        name.startswith("TFText>RoundRobin") for name in missing
    )


def test_the_list_is_that_of_2_12():
    ops = stock_ops()
    assert {"MatMul", "TopKV2", "StringSplitV2", "VarHandleOp"} <= ops
    # Later additions, as TensorFlow itself might put into a graph.
    assert not {"Conv", "RaggedFillEmptyRows", "SegmentMaxV2"} & ops
    assert len(ops) == 1659 + len(TEXT_OPS)
