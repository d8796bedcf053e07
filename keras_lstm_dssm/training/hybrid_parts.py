"""`HybridParts`: the encoders of a hybrid retriever."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.encoders import TextEncoder, WordSumEncoder
from keras_lstm_dssm.encoders.hybrid_encoder import HybridEncoder
from keras_lstm_dssm.encoders.text_encoder import TOWERS, WORDS
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.postings import default_terms
from keras_lstm_dssm.evaluation.systems import DenseSystem, with_cached_vectors
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.settings.fields import HYBRID_PARTS
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.training.word_fit import fit_words
from lstm_dssm_client.bm25 import TERM_PARTS
from lstm_dssm_client.hybrid import HUBNESS

OOV_BUCKETS = 8192  # `oov_buckets` of `WordSumEncoder` if there are no towers


class HybridParts(NamedTuple):
    """The encoders of a hybrid retriever's parts `"towers"` and `"words"`."""

    query: Mapping[str, TextEncoder]  # the query encoder of each part
    document: Mapping[str, TextEncoder]  # the document encoder of each part
    # With a teacher, `"words"` uses the teacher's vectors of whole titles.
    teacher: TeacherVectors | None = None

    @classmethod
    def of(
        cls, model: Any = None, teacher: TeacherVectors | None = None
    ) -> "HybridParts":
        """Returns the parts of a trained `TwoTower`, a teacher, or both.

        Fits word vectors to the teacher if the model has no part `"words"`.
        """
        if model is not None and not isinstance(model, TwoTower):
            raise InputError(
                f"found a {kind_of(model).noun}, expected two towers, as a"
                " hybrid combines two towers with BM25: leave --hybrid out"
            )
        query, document = {}, {}
        if model is not None:
            query = _parts_of(model.query_encoder)
            document = _parts_of(model.document_encoder)
        if teacher is None:
            return cls(query, document)
        if WORDS not in document:
            query[WORDS] = document[WORDS] = _fit_teacher_words(
                teacher.folder, query
            )
        width = teacher.vectors.shape[1]
        if width != (units := document[WORDS].units):
            raise InputError(
                f"{teacher.folder}: found vectors of {width} numbers, expected"
                f" {units} as in the run: give the teacher of the run"
            )
        return cls(query, document, teacher)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parts, including the parts of BM25 and hubness."""
        return tuple(
            name
            for name in HYBRID_PARTS
            if name in self.query
            or name in TERM_PARTS
            or (self.query and name == HUBNESS)
        )

    def settled(
        self,
        settings: HybridSettings,
        titles: Sequence[str],
        queries: Sequence[str] = (),
    ) -> HybridSettings:
        """Chooses the settings that the user has not set.

        `queries` are the queries of the training clicks, if known.
        """
        names = self.names
        if not queries:
            names = tuple(name for name in names if name != HUBNESS)
        if settings.weights == HybridSettings().weights:
            settings = settings.without_dev(names, len(titles), len(queries))
        settings = settings.of_parts(names)
        if settings.bm25_words:
            return settings
        return settings.replace(bm25_words=default_terms(titles))

    def encoders(
        self, weights: Mapping[str, float]
    ) -> tuple[HybridEncoder, HybridEncoder] | None:
        """Returns query and document encoder; `None` if no part has weight."""
        if not any(weights.get(name) for name in self.query):
            return None
        return (
            HybridEncoder(self.query, weights),
            HybridEncoder(self.document, weights),
        )

    def systems(self, **options: Any) -> dict[str, DenseSystem]:
        """Makes a system of each part; `options` are arguments of `encode`."""
        systems = {}
        for name in self.query:
            encoders = self.encoders({name: 1.0})
            assert encoders is not None
            query, document = (partial(e.encode, **options) for e in encoders)
            if name == WORDS and self.teacher is not None:
                document = partial(self.teacher.completed, encode=document)
            systems[name] = with_cached_vectors(DenseSystem(query, document))
        return systems


def _parts_of(encoder: TextEncoder) -> dict[str, TextEncoder]:
    kinds = {part.kind for part in encoder.vector_parts}
    return {kind: encoder for kind in (TOWERS, WORDS) if kind in kinds}


def _fit_teacher_words(
    folder: str | None, towers: Mapping[str, TextEncoder]
) -> WordSumEncoder:
    hashing: dict[str, Any] = {"oov_buckets": OOV_BUCKETS}
    if TOWERS in towers:
        config = towers[TOWERS].get_config()
        names = ("oov_buckets", "max_words", "split")
        hashing = {name: config[name] for name in names}
    if folder is None:
        raise InputError(
            "the vectors are not from a teacher's folder, whose texts are"
            " needed to fit words: give the result of"
            " TeacherVectors.open(folder)"
        )
    words = fit_words(folder, WordSumEncoder(**hashing).trigrams)
    encoder = WordSumEncoder(**(hashing | words.config))
    words.write_to(encoder.word_rows)
    return encoder
