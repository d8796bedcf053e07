"""Writes the data that the examples of the reference read.

`parts` is a folder in BEIR's form with clicks, `manuals` a folder of documents.
"""

from keras_lstm_dssm.data import (
    Document,
    Pair,
    write_collection,
    write_documents,
)

write_collection(
    "parts",
    documents={
        "d1": "steel hex bolt",
        "d2": "wood glue",
        "d3": "desk lamp",
        "d4": "hex nut",
    },
    queries={"q1": "hex bolt", "q2": "glue for wood", "q3": "lamp"},
    qrels_by_split={
        "dev": {"q1": {"d1": 1, "d4": 0}},
        "test": {"q2": {"d2": 1, "d3": 0}, "q3": {"d3": 1, "d1": 0}},
    },
    clicks=[
        Pair("bolt", "steel hex bolt"),
        Pair("wood adhesive", "wood glue"),
        Pair("light", "desk lamp"),
    ],
)
write_documents(
    "manuals",
    documents=[
        Document(
            id=f"m{number}",
            title=title,
            sentences=[f"{verb} the {title}.", "Read all of it first."],
            summary=[f"{verb} the {title}."],
            label=label,
            split=split,
        )
        for number, (title, verb, label, split) in enumerate(
            [
                ("wood glue", "Warm", "glue", "train"),
                ("desk lamp", "Plug in", "lamp", "train"),
                ("floor lamp", "Plug in", "lamp", "train"),
                ("wall lamp", "Hang", "lamp", "test"),
                ("paper glue", "Shake", "glue", "test"),
                ("glue stick", "Turn", "glue", "test"),
                ("table lamp", "Plug in", "lamp", "dev"),
                ("white glue", "Shake", "glue", "dev"),
            ],
            1,
        )
    ],
    queries={"q1": "glue for paper"},
    qrels_by_split={"dev": {"q1": {"m8": 1}}, "test": {"q1": {"m5": 1}}},
)
