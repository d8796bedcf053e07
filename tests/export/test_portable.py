"""One file has the vectors, hits and errors of the exported graphs."""

import itertools
import json
import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import (
    Documents,
    export_models,
    export_portable,
)
from keras_lstm_dssm.export.bulk.documents import DocumentRows
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.export.graphs.retriever import RetrieverModule
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.settings.hybrid import HybridSettings
from lstm_dssm_client import Hit, LocalModel, ServingError
from lstm_dssm_client.portable_file import (
    PORTABLE_PART,
    VARIABLES,
    PortableFile,
    write_portable,
)
from tests.encoders.small import ENCODERS, FITTED, small_encoder
from tests.export.graphs.kinds import pair_scorer
from tests.memory import release_graphs
from tests.models.small_keyvec import small_keyvec

TEXTS = [
    "hex bolt", "", "Hex-bolts, 3/8 in. x 2", "Straße ΟΔΟΣ", "bolt bolt hex",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 3,
    "naïve e\u0301clair \ufb01ne 上海 한글 ½", "x" * 60, "#", "the the the",
    b"\xff\xfe broken \xc3(",
]  # fmt: skip


def write(
    path: Path, model: dssm.TwoTower, documents: Any = None, **options: Any
) -> LocalModel:
    export_portable(model, path, documents, **options)
    return LocalModel(path)


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop" / "shop.safetensors"


def random_encoder(name: str, **options: Any) -> dssm.TextEncoder:
    """Makes an encoder of random weights; but signs stay signs."""
    encoder = small_encoder(name, **options)
    for weight in encoder.weights:
        if "signs" in weight.path:
            weight.assign(np.where(weight.numpy() < 0, -1, 1))
    return encoder


def check_vectors(
    model: dssm.TwoTower, local: LocalModel, least: float = 1 - 1e-6
) -> None:
    """Compares cosines, of a batch and of each text alone.

    Rounded weights change a text of 78 words further than usual texts.
    """
    texts = TEXTS if least > 0.9999 else TEXTS[:5] + TEXTS[6:]
    for name in ("query_encoder", "document_encoder"):
        expected = getattr(model, name).encode(texts).astype(np.float32)
        together = local.encode(texts, name)
        alone = np.vstack([local.encode([text], name) for text in texts])
        for vectors in (together, alone):
            assert vectors.dtype == np.float32
            cosines = np.sum(vectors.astype(float) * expected, axis=1)
            assert cosines.min() >= least, (name, cosines)


@pytest.mark.parametrize(("name", "options"), [
    *itertools.product(
        [*ENCODERS, *FITTED],
        [{}, {"oov_buckets": 99, "split": "stems", "max_words": 3}],
    ),
    ("rnn", {"dtype": "float64"}),
])  # fmt: skip
def test_vectors_of_every_encoder_are_those_of_the_graph(name, options, path):
    query, document = (random_encoder(name, **options) for _ in range(2))
    model = dssm.TwoTower(query, document)
    check_vectors(model, write(path, model, weights="float32"))


# Of presets that differ in a size only, one is enough.
@pytest.mark.parametrize(
    "preset",
    sorted(
        dssm.PRESETS.keys() - {"lstm_64", "lstm_96", "clsm_win1", "clsm_win3"}
    ),
)
def test_presets_are_portable(preset, path):
    recipe = dssm.PRESETS[preset].replace(towers="separate")
    if recipe.encoder == "CLSMEncoder":  # its table has 76 million numbers
        recipe = recipe.with_encoder(filters=30)
    model = dssm.build_model(recipe)
    model.adapt([text for text in TEXTS if isinstance(text, str)])
    check_vectors(model, write(path, model, weights="float32"))
    check_vectors(model, write(path, model), 0.9999)
    del model
    release_graphs()  # up to 0.6 GB, before the next preset


def test_rows_that_never_changed_are_not_stored(path):
    """And what both encoders have is stored once."""
    sizes = []
    random = np.random.default_rng(1)
    for towers in ("tied", "equal_start", "separate"):
        model = dssm.build_model(dssm.PRESETS["lstm_32"].replace(towers=towers))
        rows = random.permutation(50_653)[:20_000]
        for tower in model.towers:
            table = tower.embedding.table.numpy()
            table[rows] += random.normal(size=(20_000, 96)) / 20
            tower.embedding.table.assign(table)
        check_vectors(model, write(path, model, weights="float32"))
        check_vectors(model, write(path, model), 0.9999)
        sizes.append(path.stat().st_size)
    stored = 20_000 * (3 * 32 + 4 + 4)  # numbers, a scale, the row's number
    assert stored < sizes[0] < stored + 20_000
    assert sizes[1] == pytest.approx(2 * stored - 20_000 * 4, rel=0.01)
    assert sizes[1] < sizes[2] < sizes[1] + 20_000


def test_rows_that_are_summed_into_the_vector_are_float16(path):
    """Rounded to int8, as the others are, they would be most of the error."""
    towers = [dssm.CombinedEncoder(3, bag=8, sketch=4) for _ in range(2)]
    random = np.random.default_rng(1)
    for tower in towers:
        table = tower.bag_embedding.table
        table.assign(random.normal(size=table.shape))
    model = dssm.TwoTower(*towers)
    expected = model.query_encoder.encode(TEXTS[:5])[:, 3:11]
    sums = write(path, model).encode(TEXTS[:5])[:, 3:11]
    lengths = np.linalg.norm(expected, axis=1)
    errors = np.linalg.norm(sums - expected, axis=1)[lengths > 0]
    assert (0 < errors).all() and (errors < 0.0005 * lengths[lengths > 0]).all()
    file = PortableFile(path)
    table = file._arrays["document_encoder/bag_embedding/table"]
    lstm = file._arrays["document_encoder/embedding/table"]
    assert (table.dtype, lstm.dtype) == (np.float16, np.int8)
    table[0, 0] = np.inf
    write_portable(path, file.header, file._arrays)
    check_refused(path)


IDS = ["d1", "d2", "d3", "d4"]
TITLES = ["steel hex bolt", "wood glue", "Garden hose", "steel hex bolt"]
TAGS = [["steel", "in stock"], ["in stock"], [], ["steel"]]


@pytest.fixture(scope="module")
def model() -> dssm.TwoTower:
    """Tests only read it; its graphs are traced once."""
    return dssm.TwoTower(small_encoder("rnn"), small_encoder("rnn"))


@pytest.mark.parametrize("vectors", ["float32", "int8"])
def test_hits_are_those_of_the_retriever(model, path, vectors):
    shown = [f"The {title}" for title in TITLES]
    local = write(path, model, Documents(IDS, TITLES, (), TAGS, shown),
                  weights="float32", vectors=vectors)  # fmt: skip
    rows = model.document_encoder.encode(TITLES)
    module = RetrieverModule(
        EncoderModule(model.query_encoder),
        DocumentRows(IDS, rows, TAGS, shown),
        vectors,
    )
    queries = ["bolt", "glue", ""]
    texts = dict(zip(IDS, TITLES, strict=True))
    for k in (1, 3, 9):
        for tags in ((), ["steel"], ["in stock", "steel"]):
            inputs = [np.array(queries, object), np.full(3, k, np.int32)]
            if tags:
                inputs.append(np.full(3, ",".join(tags), object))
            expected = (module.filtered if tags else module.serve)(*inputs)
            hits = local.search(queries, k, tags=tags)
            outputs = [
                expected[name].numpy() for name in ("ids", "titles", "scores")
            ]
            for found, ids, titles, row in zip(hits, *outputs, strict=True):
                assert [h.id.encode() for h in found] == [*filter(None, ids)]
                assert titles.tolist() == [
                    *(f"The {texts[h.id]}".encode() for h in found),
                    *[b""] * (len(ids) - len(found)),
                ]
                assert [h.title.encode() for h in found] == [
                    *filter(None, titles)
                ]
                np.testing.assert_allclose(
                    [hit.score for hit in found], row[: len(found)], atol=1e-6
                )
    assert local.titles == dict(zip(IDS, shown, strict=True))
    assert local.texts == texts
    number = Counter(tag for tags in TAGS for tag in tags)
    assert local.tags() == dict(sorted(number.items()))
    line = "found the tag 'Steal', which no document has: give another, such"
    with pytest.raises(dssm.InputError, match=f"{path}: {line} as steel"):
        local.search(queries, tags=["Steal", "steel"])


@pytest.mark.parametrize("vectors", ["float32", "int8"])
@pytest.mark.parametrize("count", [11, 300])
def test_equal_titles_have_one_score(model, path, vectors, count):
    """In a graph, too, one by one and in batches; the first title is first."""
    titles = [f"{'same' if row % 3 else 'other'} title" for row in range(count)]
    ids = [*map(str, range(count))]
    documents = Documents(ids, titles)
    local = write(path, model, documents, vectors=vectors)
    module = RetrieverModule(
        EncoderModule(model.query_encoder),
        DocumentRows(
            ids, EncoderModule(model.document_encoder).encode_all(titles)
        ),
        vectors,
    )

    def in_graph(queries: list[str], k: int) -> list[list[Hit]]:
        counts = np.full(len(queries), k, np.int32)
        found = module.serve(np.array(queries, object), counts)
        rows = zip(found["ids"].numpy(), found["scores"].numpy(), strict=True)
        return [
            [
                Hit(i.decode(), s, titles[int(i)])
                for i, s in zip(*row, strict=True)
            ]
            for row in rows
        ]

    queries = ["same title", "other", "a title", "glue", "same same"]
    same = [id for id in ids if int(id) % 3]
    other = [id for id in ids if not int(id) % 3]
    for search in (in_graph, local.search):
        for batch in (queries, queries[:1], queries[2:]):
            every, five = search(batch, count), search(batch, 5)
            for hits, first in zip(every, five, strict=True):
                assert len({hit.score for hit in hits}) == 2
                order = [hit.id for hit in hits]
                assert order in (same + other, other + same)
                assert [hit.id for hit in first] == order[:5]


@pytest.mark.parametrize(
    ("vectors", "hybrid"), [("int8", HybridSettings()), ("float32", None)]
)
def test_beside_a_savedmodel(tmp_path, vectors, hybrid):
    """It has the hits of the graph, and none of the variables' numbers."""
    model = dssm.build_model("lstm_32")
    titles = [f"bolt {n % 290} of steel {n % 7}" for n in range(300)]
    ids = [f"d{number}" for number in range(300)]
    tags = [["steel"] if number % 3 else [] for number in range(300)]
    export_models(
        model, tmp_path, Documents(ids, titles, (), tags), vectors,
        hybrid=hybrid,
    )  # fmt: skip
    saved = SavedRetriever(tmp_path / "retriever")
    path = tmp_path / "retriever" / "1" / PORTABLE_PART
    local, queries = LocalModel(path), ["bolt 17", "steel", "glue of 3"]
    for options in ({}, {"tags": ["steel"]}):
        for found, expected in zip(
            local.search(queries, 9, **options),
            saved.search(queries, 9, **options),
            strict=True,
        ):
            assert [h.id for h in found] == [h.id for h in expected]
            assert [h.title for h in found] == [h.title for h in expected]
            np.testing.assert_allclose(
                [h.score for h in found], [h.score for h in expected], atol=1e-5
            )
    if hybrid:
        assert [h.id for h in local.explain(["steel"], 3)[0]] == [
            h.id for h in saved.explain(["steel"], 3)[0]
        ]
    where = PortableFile(path).header["variables"]
    assert "vectors" in where
    with safe_open(path, "np") as file:
        assert not where.keys() & {*file.keys()}
    variables = tmp_path / "retriever" / "1" / VARIABLES
    whole, start = variables.read_bytes(), where["vectors"][0]
    changed = bytes([whole[start] ^ 1])
    for damaged in (
        whole[:start] + changed + whole[start + 1 :],
        whole[: start + 5],
    ):
        variables.write_bytes(damaged)
        check_refused(path)
    variables.unlink()
    check_refused(path)


@pytest.mark.parametrize("place", [
    [0, "O", [1]], [0, "<f4", [-1]], [-8, "<f4", [1]], [0, "<f4", [2**62]],
    [0, "?", [4]], "abc", [0, "<f4", "x"], [1e300, "<f4", [1]],
])  # fmt: skip
def test_places_of_other_arrays_are_one_line(model, path, place):
    write(path, model, Documents(IDS, TITLES))
    file = PortableFile(path)
    file.header["variables"] = {"vectors": place}
    (path.parent.parent / "variables").mkdir()
    (path.parent.parent / VARIABLES).write_bytes(bytes(64))
    text = json.dumps(file.header)
    path.write_bytes(save(file._arrays, {"lstm_dssm": text, "crc32": "1"}))
    check_refused(path)


def test_it_answers_as_a_client_does(model, path):
    with write(path, model, Documents(TITLES[:3], TITLES[:3])) as local:
        status = {local.version: ("AVAILABLE", "OK", "")}
        assert local.status("retriever") == status
        assert local.encode([]).shape == (0, 4)
        assert local.search([]) == []
        (hits,) = local.search(["bolt"], k=2, version=local.version)
        assert len(hits) == 2 and isinstance(hits[0], Hit)
        assert local.titles[hits[0].id] == hits[0].id
        for refused in (
            lambda: local.status("scorer"),
            lambda: local.search(["bolt"], model="query_encoder"),
            lambda: local.search(["bolt"], version=1),
            lambda: local.encode(["bolt"], "retrieve"),
        ):
            with pytest.raises(ServingError, match="query_encoder") as error:
                refused()
            assert error.value.code == 404
            assert "\n" not in str(error.value)
        with pytest.raises(dssm.InputError, match="exported without tags"):
            local.search(["bolt"], tags=["steel"])
        for k in (0, 2.0):
            with pytest.raises(dssm.InputError, match=f"k is {k}; expected"):
                local.search(["bolt"], k=k)
        with pytest.raises(dssm.InputError, match="got one text"):
            local.search("bolt")
    with write(path, model) as local:
        assert local.titles == {}
        with pytest.raises(ServingError, match="query_encoder, document_enc"):
            local.search(["bolt"])


def test_threads_share_it(model, path):
    local = write(path, model, Documents(TITLES[:3], TITLES[:3]))
    texts = [f"bolt é{number}" for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: local.search(texts), range(4))]
    assert found == [local.search(texts)] * 4


def test_the_card_and_the_version(trained_run, path):
    local = write(path, dssm.load_run(trained_run), Documents(IDS, TITLES),
                  run=trained_run)  # fmt: skip
    run = local.card["run"]
    assert run["name"] == trained_run.name
    assert run["config"]["recipe"]["encoder_config"]["cells"] == 32
    assert "finished" in run["facts"]["training"]
    assert local.card["documents"] == 4 and local.card["date"] > "2026"
    assert local.version > 1.7e9


def test_other_models_are_refused_in_one_line(path):
    class Own(dssm.RNNEncoder):
        """Not of this package."""

    towers = dssm.TwoTower(small_encoder("rnn"), small_encoder("rnn"))
    table = towers.query_encoder.embedding.table
    table.assign(table * np.nan)
    for model, options, message in (
        (
            pair_scorer("RecurrentCosine"),
            {},
            "found a pair scorer, and only two towers are p",
        ),
        (small_keyvec(), {}, "found a KeyVec, and only two towers are porta"),
        (dssm.TwoTower(Own(2), Own(2)), {}, "found the encoder Own, and only"),
        (towers, {}, "not finite"),
        (towers, {"weights": "int4"}, "weights must be one of float32, int8"),
    ):
        with pytest.raises(dssm.InputError, match=message) as error:
            export_portable(model, path, **options)
        assert "\n" not in str(error.value)
        assert not path.exists()


def in_config(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    """Returns a function that changes a value of an encoder's configuration."""
    return lambda header: header["encoders"]["query_encoder"]["config"].update(
        {name: value}
    )


HEADERS = {
    "another format": lambda header: header.update(format=1),
    "no version": lambda header: header.pop("version"),
    "no class": lambda header: header["encoders"].pop("query_encoder"),
    "another class": lambda header: header["encoders"]["query_encoder"].update(
        {"class": "os.system"}
    ),
    "encoders": lambda header: header.update(encoders=[1, 2]),
    **{
        f"{name} {value}": in_config(name, value)
        for name, values in {
            "units": (5, -1, 10**30, 1e300, "4", None, {}, True),
            "oov_buckets": (3, -5), "split": ("words", 3),
            "max_words": (-1, "x"),
        }.items()
        for value in values
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def written(request, model, tmp_path_factory) -> Path:
    """A file with documents, of which two have equal vectors; tests copy it."""
    path = tmp_path_factory.mktemp("written") / "shop.safetensors"
    write(path, model, Documents(IDS, TITLES), hybrid=request.param)
    return path


@pytest.mark.parametrize("written", [None], indirect=True)
@pytest.mark.parametrize("name", HEADERS)
def test_another_header_is_one_line(name, written, path):
    file = PortableFile(written)
    HEADERS[name](file.header)
    write_portable(path, file.header, file._arrays)
    check_refused(path)


@pytest.mark.parametrize("change", [
    lambda a: a + 1, lambda a: a - 1, lambda a: a * 2, lambda a: a * 0,
    lambda a: a[1:], lambda a: a.astype(np.int64), lambda a: None,
])  # fmt: skip
@pytest.mark.parametrize("written", [None], indirect=True)
def test_numbers_of_other_vectors_are_one_line(change, written, path):
    file = PortableFile(written)
    changed = change(file._arrays.pop("vector_of"))
    if changed is not None:
        file._arrays["vector_of"] = changed
    write_portable(path, file.header, file._arrays)
    check_refused(path)


def of_hybrid(**values: Any) -> Callable[[PortableFile], Any]:
    """Returns a function that changes settings in the header of a hybrid."""
    return lambda file: file.header["hybrid"].update(values)


def of_array(name: str, change: Callable[[Any], Any]) -> Any:
    """Returns a function that changes an array of terms."""

    def changed(file: PortableFile) -> None:
        file._arrays[f"terms/{name}"] = change(file._arrays[f"terms/{name}"])

    return changed


HYBRIDS: dict[str, Callable[[PortableFile], Any]] = {
    "infinite": of_hybrid(towers=float("inf")),
    "base": of_hybrid(base="x"),
    "negative": of_hybrid(towers=-0.5, bm25=1.5),
    "text": of_hybrid(bm25="x"),
    "nan": of_hybrid(bm25=float("nan")),
    "words": of_hybrid(words=1.0),
    "terms of words": of_hybrid(terms=-1),
    "terms": of_hybrid(bm25_words="letters"),
    "list": lambda file: file.header.update(hybrid=[1]),
    "no encoder": lambda file: file.header.update(encoders={}),
    "no array": lambda file: file._arrays.pop("terms/bounds"),
    "bounds": of_array("bounds", lambda a: a + 1),
    "descending": of_array("bounds", lambda a: a[[0, 2, 1, *range(3, len(a))]]),
    "empty": of_array("bounds", lambda a: a[:0]),
    "documents": of_array("documents", lambda a: a + 2),
    "dtype": of_array("documents", lambda a: a.astype(np.int64)),
    "numbers": of_array("form_terms", lambda a: a - 3),
    "fewer": of_array("form_terms", lambda a: a[1:]),
    "forms": of_array("forms", lambda a: a | 128),
    "scores": of_array("scores", lambda a: a * np.inf),
}


@pytest.mark.parametrize("written", [HybridSettings()], indirect=True)
@pytest.mark.parametrize("name", HYBRIDS)
def test_another_hybrid_is_one_line(name, written, path):
    assert LocalModel(written).search(["bolts"], k=1)
    file = PortableFile(written)
    HYBRIDS[name](file)
    write_portable(path, file.header, file._arrays)
    check_refused(path)


def check_refused(path: Path) -> None:
    with pytest.raises(dssm.InputError) as error:
        LocalModel(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    assert len(message) < 500 + len(str(path))


@pytest.mark.parametrize("hybrid", [None, HybridSettings()])
def test_damaged_files_are_one_line(hybrid, model, path):
    write(path, model, Documents(IDS, TITLES, (), TAGS), hybrid=hybrid)
    whole = path.read_bytes()
    random = np.random.default_rng(1)
    header = 8 + int.from_bytes(whole[:8], "little")
    damaged = [b"", whole[:7], whole[:8], whole[: header - 1], whole + b"x"]
    damaged += [whole[: random.integers(len(whole))] for _ in range(20)]
    for limit in (header, len(whole)):
        for _ in range(60):
            place = random.integers(limit)
            byte = (whole[place] + random.integers(1, 256)) % 256
            damaged.append(whole[:place] + bytes([byte]) + whole[place + 1 :])
    for size in (2**63, 2**64 - 1, 2**31, 10**8 + 1, len(whole)):
        damaged.append(size.to_bytes(8, "little") + whole[8:])
    deep = b"[" * 200_000
    damaged.append(len(deep).to_bytes(8, "little") + deep)
    damaged.append(pickle.dumps({"a": np.zeros(3)}))
    for data in damaged:
        path.write_bytes(data)
        check_refused(path)
    path.unlink()
    check_refused(path)
    path.mkdir()
    check_refused(path)


def test_an_old_file_stays_if_the_new_one_fails(model, path, monkeypatch):
    write(path, model)
    before = path.read_bytes()

    def fail(partial: Path, *_: Any) -> None:
        partial.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keras_lstm_dssm.export.portable.write_portable", fail)
    with pytest.raises(OSError, match="No space"):
        export_portable(model, path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
