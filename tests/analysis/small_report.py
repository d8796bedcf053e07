"""Documents for the report of a KeyVec, with hand-made targets."""

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.training import DocumentTargets
from keras_lstm_dssm.training.document_targets import Target
from keras_lstm_dssm.training.salience import SalienceCounts

DOCUMENTS = [
    Document("d1", "<b>Bolts</b>", ["The hex bolt", "Glue <i> & co", "Drill"],
             ["Hex bolt.", "A drill."], "tools"),
    Document("d2", "", ["Wood glue", "The lamp of wood"], ["Glue."], "wood"),
    Document("d3", "Lamps", ["The lamp", "Lamp of glue"], [], "wood"),
    Document("d4", "Drills", ["Drill of the lamp", "of", "Hex"], ["Hex."]),
]  # fmt: skip
TARGETS = DocumentTargets(
    {
        "d1": Target(3, [0, 2], ["bolt", "gizmo", "drill"]),
        "d2": Target(2, [0], ["glue"]),
        "d3": Target(2, [0], []),
        "d4": Target(3, [2], ["hex"]),
    },
    SalienceCounts(0.5),
)
SENTENCES = [document.sentences for document in DOCUMENTS]
