"""RetrieverDetails: what a retriever is made of, for a later refresh."""

import dataclasses
from pathlib import Path

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.fingerprints import HASH_BYTES

_FILE = Path("assets.extra", "retriever.json")
_HASHES = Path("assets.extra", "title_hashes.npy")


@dataclasses.dataclass(frozen=True)
class RetrieverDetails:
    """Holds what a version of a retriever has beside its SavedModel.

    Attributes:
        encoder_sha256: Fingerprint of the encoder of its titles.
        hashes: Hashes of the titles, uint8 `[n, 16]`.
        kind: How the vectors are stored, a key of `VECTORS`.
        max_k: Maximum number of results for a query.
    """

    encoder_sha256: str
    hashes: np.ndarray
    kind: str
    max_k: int

    def write(self, version: Path) -> None:
        """Writes the details into a version's folder."""
        (version / _FILE).parent.mkdir(exist_ok=True)
        np.save(version / _HASHES, self.hashes, allow_pickle=False)
        settings = {
            "encoder_sha256": self.encoder_sha256,
            "vectors": self.kind,
            "max_k": self.max_k,
        }
        write_json(version / _FILE, settings)

    @classmethod
    def read(cls, version: Path) -> "RetrieverDetails":
        """Reads the details of a version.

        Raises:
            InputError: There are none, or they are damaged.
        """
        advice = "export it with --run and --documents"
        if not (version / _FILE).exists():
            raise InputError(
                f"{version}: found no {_FILE}, expected a retriever of this "
                f"version of lstm-dssm-export: {advice}"
            )
        settings = read_json(version / _FILE)
        try:
            hashes = np.load(version / _HASHES, allow_pickle=False)
            if hashes.dtype != np.uint8 or hashes.shape[1:] != (HASH_BYTES,):
                raise ValueError(f"found {hashes.dtype} {list(hashes.shape)}")
            return cls(
                settings["encoder_sha256"],
                hashes,
                settings["vectors"],
                settings["max_k"],
            )
        except (OSError, EOFError, ValueError, KeyError) as error:
            raise InputError(
                f"{version}: damaged ({error}); {advice}"
            ) from error
