"""Exports a trained model as SavedModels for TF Serving.

This is the work of the program lstm-dssm-export. Its help and its flags are in
`tools/flags/export.py`, which is imported first and without TensorFlow.
"""

import sys
from typing import Any

from keras_lstm_dssm.analysis.evaluate import MODEL, required_weights
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Mixture
from keras_lstm_dssm.export.bulk.documents import Documents, read_documents
from keras_lstm_dssm.export.bulk.parts import EncodedParts, has_parts
from keras_lstm_dssm.export.export_models import export_models
from keras_lstm_dssm.export.publish.retriever_update import update_retriever
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread
from keras_lstm_dssm.text_files import text_lines
from keras_lstm_dssm.tools.flags.export import COMMAND_LINE, FLAGS


def main(_: list[str]) -> dict[str, Any]:
    """Exports the models and returns the folders of their new versions."""
    use_one_intra_op_thread()
    if FLAGS.update:
        return _updated()
    for flag in (FLAGS["run"], FLAGS["output"]):
        if not flag.value:
            raise InputError(
                f"--{flag.name} is missing: {FLAGS[flag.name].help}"
            )
    for flag in (FLAGS["add"], FLAGS["delete"]):
        if flag.value:
            raise InputError(
                f"--{flag.name} is used with --update=MODELS/retriever only: "
                "leave it out"
            )
    weights = required_weights(FLAGS.mix, FLAGS.mix_weights)
    documents = _documents(FLAGS.documents) if FLAGS.documents else None
    folders = export_models(
        _load_mixture(weights)
        if FLAGS.mix
        else RunFolder(FLAGS.run).load_model(),
        FLAGS.output,
        documents,
        FLAGS.vectors,
        FLAGS.max_k,
        progress=sys.stderr.isatty(),
        runs=[FLAGS.run, *FLAGS.mix],
    )
    for folder in folders:
        print(f"wrote {folder}")
    return {"folders": [str(folder) for folder in folders]}


def _documents(path: str) -> Documents | EncodedParts:
    if has_parts(path):
        parts = EncodedParts(path)
        print(f"{parts.rows:,} encoded titles")
        return parts
    documents = read_documents(path)
    print(f"{len(documents.ids):,} documents")
    return documents


def _updated() -> dict[str, Any]:
    """Updates the retriever of --update, and returns what has changed."""
    for name in ("run", "output", "documents", "mix", "vectors", "max_k"):
        if FLAGS[name].present:
            raise InputError(
                f"--{name} is not used with --update, which keeps the model "
                "and its settings: leave it out"
            )
    if not (FLAGS.add or FLAGS.delete):
        raise InputError("--update needs --add, --delete or both")
    deleted = text_lines(FLAGS.delete) if FLAGS.delete else ()
    result = update_retriever(
        FLAGS.update,
        read_documents(FLAGS.add) if FLAGS.add else None,
        [line.strip() for line in deleted if line.strip()],
        progress=sys.stderr.isatty(),
    )
    if result.unknown:
        names = ", ".join(map(repr, result.unknown[:3]))
        print(
            f"--delete: {len(result.unknown):,} ids are not in the retriever: "
            f"{names}" + ", ..." * (len(result.unknown) > 3)
        )
    print(
        f"{result.rows:,} titles: {result.encoded:,} encoded, "
        f"{result.deleted:,} removed"
    )
    if result.published:
        print(f"wrote {result.folder}")
    else:
        print(f"{result.folder}: nothing has changed, no new version")
    return {**result._asdict(), "folder": str(result.folder)}


def _load_mixture(weights: dict[str, float]) -> Mixture:
    """Loads the towers of --run and --mix, with their weights."""
    folders = {MODEL: RunFolder(FLAGS.run)}
    for name in FLAGS.mix:
        folders[name] = RunFolder(name)
        if not folders[name].path.is_dir():
            raise InputError(
                f"--mix: {name!r} is not the folder of a run: only encoders of"
                " runs can be exported; search with BM25 and with outside"
                " encoders by lstm-dssm-search --run, or from Python"
            )
    return Mixture(
        {name: folder.load_towers() for name, folder in folders.items()},
        weights,
    )


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
