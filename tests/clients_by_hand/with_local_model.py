"""LocalModel on the demo's file of `lstm-dssm-export --portable`."""

from common import ROOT, SIDES, embeds

from lstm_dssm_client import LocalModel

model = LocalModel(ROOT / "build/demo/shop.safetensors")
embeds(
    "LocalModel",
    lambda texts: model.encode(texts, SIDES[0]),
    lambda texts: model.encode(texts, SIDES[1]),
    apart=0.1,  # the tables of the file are rounded
)
