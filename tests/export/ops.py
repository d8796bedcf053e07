"""Which ops an exported graph needs, and which ops stock servers have."""

from pathlib import Path

from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

# Those of TF.Text that TF Serving 2.12 and all later ones link and that
# hashing and tokenising text may need. It links more of them; the trimmers
# (TFText>RoundRobin*) and TFText>Utf8Binarize came with 2.20.
TEXT_OPS = frozenset(
    {
        "CaseFoldUTF8",
        "NormalizeUTF8",
        "RegexSplitWithOffsets",
        "TFText>NgramsStringJoin",
        "TFText>WhitespaceTokenizeWithOffsetsV2",
    }
)


def stock_ops() -> frozenset[str]:
    """Returns the names of the ops that a graph for TF Serving may use."""
    lines = Path(__file__).with_name("ops_2_12.txt").read_text().splitlines()
    return TEXT_OPS.union(
        *(line.split() for line in lines if not line.startswith("#"))
    )


def serving_ops(saved_model: Path) -> frozenset[str]:
    """Returns the names of all ops in a SavedModel's graph and functions.

    Args:
        saved_model: A version's folder.
    """
    model = SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    ops: set[str] = set()
    for meta_graph in model.meta_graphs:
        graph = meta_graph.graph_def
        functions = graph.library.function
        ops.update(node.op for node in graph.node)
        ops.update(
            node.op for function in functions for node in function.node_def
        )
        # A function may be called by its name as if it were an op.
        ops -= {function.signature.name for function in functions}
    return frozenset(ops)
