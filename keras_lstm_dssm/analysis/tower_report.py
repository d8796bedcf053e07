"""The report of two towers: results and analyses (Palangi et al. 2016, V-A)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.claims import (
    CLAIM_LABELS,
    ClaimResult,
    measure_claims,
)
from keras_lstm_dssm.analysis.drawing import (
    draw_activations,
    draw_active,
    draw_aligned,
)
from keras_lstm_dssm.analysis.maps import draw_map, title_map
from keras_lstm_dssm.analysis.report import (
    Report,
    measured_sections,
    report_data,
    training_sections,
)
from keras_lstm_dssm.analysis.words import (
    SIDES,
    Keyword,
    VectorPart,
    attenuation,
    cell_note,
    common_parts,
    distinctive_words,
    growth,
    keywords,
    part_products,
    topics,
)
from keras_lstm_dssm.data.click_log import ClickLog, Pair
from keras_lstm_dssm.data.sources import (
    is_collection,
    open_collection,
    open_log,
)
from keras_lstm_dssm.encoders.activations import Activations, activations
from keras_lstm_dssm.encoders.text_encoder import WHOLE_VECTOR, TextEncoder
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.pages import Bar, Cell, Picture, Section, Strong, Table
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.programs import ReportSettings

_MOST_CELLS = 24
_MOST_WORDS = 12
_NEAREST = 10
_METHOD_NAMES = {"tsne": "t-SNE", "pca": "PCA"}
_NOT_RECURRENT = (
    " This encoder reads all words at once. Only an LSTM, a bidirectional LSTM "
    "or an RNN has activations, keywords and topics."
)


def report_on_towers(
    model: TwoTower, run: RunFolder, settings: ReportSettings, pictures: Path
) -> Report:
    """Reports how well two towers search, and what their cells represent."""
    data, max_bad_lines, min_relevant = report_data(run, settings)
    texts = read_report_texts(data, max_bad_lines, fields=run.read_fields())
    training = training_sections(
        run,
        pictures / "cost.png",
        {"loss": "training", "val_loss": "validation"},
        "mean cost of a click (eq. 4)",
        "Training, epoch by epoch (Fig. 7)",
        "Training cost by epoch",
        "The scale is logarithmic. If the training cost still falls at the "
        "end, more epochs may help. If the validation cost rises while the "
        "training cost falls, the model overfits.",
        yscale="log",
    )
    titles = texts.titles
    claims = []
    if settings.claims:
        claims = measure_claims(
            model, texts.pairs, texts.contexts,
            settings.cells, settings.change, settings.share,
        )  # fmt: skip
    query, document = settings.pair
    towers = model.query_encoder, model.document_encoder
    recurrent = all(tower.networks for tower in towers)
    results: dict[str, Any] = {}
    sections: list[Section] = []
    if is_collection(data):
        results, sections = measured_sections(
            model, open_collection(data, run.read_fields()), min_relevant
        )
    sections += training
    sections += _pair_sections(model, recurrent, settings, pictures)
    if recurrent:
        queries = settings.queries or [pair.query for pair in texts.pairs]
        sections.append(_topics_section(model, queries, settings))
    sections.append(_nearest_section(model, query, document, titles))
    sections.append(_map_section(model, titles, settings, pictures))
    if claims:
        sections.append(_claims_section(claims))
    names = list(dict.fromkeys(type(tower).__name__ for tower in towers))
    values: dict[str, Any] = results | {
        side: [effect._asdict() for effect in attenuation(tower, text)]
        for side, tower, text in zip(SIDES, towers, settings.pair, strict=True)
    }
    values["claims"] = [
        {**claim._asdict(), "comparison": claim.comparison._asdict()}
        for claim in claims
    ]
    encode_titles = partial(model.document_encoder.encode, titles)
    return Report(
        "How good the search is, and what the model keeps of a text",
        f"Run {run.path.absolute().name}, {' and '.join(names)}. The"
        " pictures of words and cells, in the second part, are about the query"
        f" {query!r} and the title {document!r}."
        + _NOT_RECURRENT
        * (not recurrent),
        sections,
        values,
        texts.bad_lines,
        projected=("titles", titles, encode_titles),
    )


def _topics_section(
    model: TwoTower, queries: Sequence[str], settings: ReportSettings
) -> Section:
    words_by_cell = topics(
        model.query_encoder, queries, settings.topic_cells, settings.change
    )
    groups = [[word for word, _ in words] for words in words_by_cell.values()]
    rows = [
        [str(cell), " · ".join(f"{w} ({n})" if n > 1 else w for w, n in words)]
        for cell, words in zip(
            words_by_cell, distinctive_words(groups, _MOST_WORDS), strict=True
        )
    ]
    return Section(
        "The words of each cell (Table III)",
        [Table(["Cell", "Words"], rows[:_MOST_CELLS], text_columns=[1])],
        f"The table has words of {len(queries):,} queries. A word "
        "belongs to a cell if the word changes the cell in a query, and the "
        f"cell is one of the {settings.topic_cells} most active cells of this "
        "query. A number in brackets says how often the word changes the cell "
        "in these queries, if more than once. The cells with the most "
        "words come first. Each row has the words that distinguish its cell "
        "from other cells. Look for cells whose words belong together in "
        "meaning. Words that share letters have similar vectors in any encoder "
        "of letter trigrams." + cell_note(model.query_encoder),
    )


def _nearest_section(
    model: TwoTower, query: str, document: str, titles: Sequence[str]
) -> Section:
    hits = Index(model, titles).search([query], _NEAREST)[0]
    rows = [
        [f"{hit.score:.3f}", Strong(hit.id) if hit.id == document else hit.id]
        for hit in hits
    ]
    return Section(
        "Nearest titles",
        [Table(["Cosine", "Title"], rows, text_columns=[1])],
        f"The table has the {len(rows)} of {len(titles):,} titles whose cosine "
        "with the query is largest. Look for the words, or the letters, that "
        "a wrong title shares with the query.",
    )


def _map_section(
    model: TwoTower,
    titles: Sequence[str],
    settings: ReportSettings,
    folder: Path,
) -> Section:
    rows = np.random.default_rng(0).permutation(len(titles))
    sample = [titles[row] for row in rows[: settings.map_titles]]
    path = folder / "title_map.png"
    vectors = model.document_encoder.encode(sample)
    draw_map(path, title_map(sample, vectors, settings.map))
    return Section(
        "A map of titles",
        [Picture("Titles on a plane, with the names of clusters", path)],
        f"{_METHOD_NAMES[settings.map]} has laid out {len(sample):,} titles: "
        "titles with similar vectors lie together. Clusters are named by the "
        "words that distinguish them from other clusters. Look for clusters "
        "of titles that share a meaning but no word. Distances between "
        "clusters mean little.",
    )


def _claims_section(claims: Sequence[ClaimResult]) -> Section:
    rows: dict[str, list[list[str]]] = {name: [] for name in CLAIM_LABELS}
    for claim, side, weights, (value, chance, p, number) in claims:
        numbers = [f"{value:.3f}", f"{chance:.3f}", f"{p:.4f}", f"{number:,}"]
        rows[claim].append([f"{side}, {weights}", *numbers])
    header = ["Encoder", "Value", "Chance", "p", "Of"]
    return Section(
        "The paper's claims as numbers",
        [Table(header, rows[n], CLAIM_LABELS[n]) for n in rows if rows[n]],
        "Chance is the mean value of random draws. For a claim about words "
        "that the model chooses, such as keywords, a draw takes random words "
        "from each text, as many as the model chooses. For a claim about the "
        "words of one cell, a draw shuffles the active cells: each text gets "
        "the active cells of another text. All p-values are two-sided. For "
        "claims about the cosine of a pair, the p-value comes from a "
        "randomisation test. All other p-values come from the draws. The last "
        "column is the number of words or texts. If "
        "untrained encoders show an effect, too, the effect does not come from "
        "training. For example, a short word has few trigrams, and therefore "
        "changes the vectors of any encoder little.",
    )


_DIRECTIONS = ("Cells, left to right", "Cells, right to left")


def _pair_sections(
    model: TwoTower, recurrent: bool, settings: ReportSettings, folder: Path
) -> Iterator[Section]:
    texts = settings.pair
    towers = model.query_encoder, model.document_encoder
    states = [
        activations(tower, text)
        for tower, text in zip(towers, texts, strict=True)
        if recurrent
    ]
    if states:
        cells = min(settings.cells, states[0].y.shape[1])
        settings = settings.replace(cells=cells)
    vectors = [
        tower.encode([text])[0]
        for tower, text in zip(towers, texts, strict=True)
    ]
    if len(common_parts(model)) > 1:
        yield _parts_section(model, vectors)
    yield _aligned_section(model, texts, states, settings, folder)
    if states:
        yield _activations_section(states, folder)
        yield _active_cells_section(states, settings, folder)
    yield _words_section(towers, texts, vectors, states, settings)


def _parts_section(model: TwoTower, vectors: list[np.ndarray]) -> Section:
    query, document = vectors
    whole = VectorPart(WHOLE_VECTOR, 0, len(query))
    parts = [*common_parts(model), whole]
    query_shares, document_shares, cosines = (
        part_products(parts, left[np.newaxis], right)[0]
        for left, right in (
            (query, query), (document, document), (query, document),
        )
    )  # fmt: skip
    rows = [
        [
            Strong(part.name) if part is whole else part.name,
            " to ".join(map(str, sorted({part.start, part.stop - 1}))),
            f"{query_shares[index]:.1%}",
            f"{document_shares[index]:.1%}",
            f"{cosines[index]:+.3f}",
        ]
        for index, part in enumerate(parts)
    ]
    header = [
        "Part", "Numbers", "Share of the query", "Share of the document",
        "Adds to the cosine",
    ]  # fmt: skip
    return Section(
        "Parts of the vector",
        [Table(header, rows)],
        f"A text's vector has {whole.stop} numbers. The first part is the "
        "final output of an LSTM. The second part is a sum of trained vectors, "
        "one for each letter trigram. The third part, the sketch, is an "
        "untrained random projection of the words. The fourth part, the length "
        "norm, is one number. The third and the fourth part together have the "
        "same norm for every text. A fifth part, if present, is a sum of "
        "word vectors. A share is a part's share of the vector's "
        "squared norm. The cosine is the sum of what the parts add. Only the "
        "LSTM has cells: activations, active cells, keywords and topics "
        "describe the LSTM.",
    )


def _aligned_section(
    model: TwoTower,
    texts: tuple[str, str],
    states: list[Activations],
    settings: ReportSettings,
    folder: Path,
) -> Section:
    growing = growth(model, *texts)
    path = folder / "aligned.png"
    draw_aligned(path, growing, states, settings.cells)
    text = (
        "At each word, the line shows the cosine of the text up to this word "
        "with the whole other text. The cosine should rise at words that the "
        "pair shares."
    )
    if len(growing.parts) > 1:
        text += " The dashed lines show what each part of the vector adds."
    if states:
        text += (
            f" Above the lines are the {settings.cells} cells that add most to "
            "the final cosine. A cell adds to the cosine if it ends with the "
            "same colour in both texts. A cell responds to the word at which "
            "its colour changes." + cell_note(model.query_encoder)
        )
    caption = "Cells and cosine after each word of the query and the title"
    title = "The query and the title, word by word"
    return Section(title, [Picture(caption, path)], text)


def _activations_section(states: list[Activations], folder: Path) -> Section:
    networks = [network for state in states for network in state.directions]
    draw = partial(draw_activations, others=networks)
    return Section(
        "What each cell does at each word (Figs. 4 and 5)",
        _pictures(states, folder, "activations", draw),
        "The pictures show every cell at every word. Red is positive, and blue "
        "is negative. White is zero; columns without a word are white, too. "
        "All pictures have the same range of colours. Colours follow the "
        "square root of the value, so that small values are visible. A row of "
        "c(t) or y(t) that keeps its colour from a word to the end remembers "
        "the word. If the input gates are pale at a word, the cells take in "
        "little of the word.",
    )


def _active_cells_section(
    states: list[Activations], settings: ReportSettings, folder: Path
) -> Section:
    draw = partial(draw_active, cells=settings.cells)
    return Section(
        f"The {settings.cells} most active cells (Fig. 6)",
        _pictures(states, folder, "active", draw),
        "The pictures show the cells with the largest |y| at the end of the "
        "text, the most active cell on top. A cell responds to the words at "
        "which its output changes. The table below counts these changes.",
    )


def _pictures(
    states: list[Activations],
    folder: Path,
    name: str,
    draw: Callable[[Path, Activations], None],
) -> list[Picture]:
    pictures = []
    for side, state in zip(SIDES, states, strict=True):
        for network in state.directions:
            path = folder / f"{name}_{side}{'_back' * network.reverse}.png"
            draw(path, network)
            heading = f"The {side}" + ", from right to left" * network.reverse
            pictures.append(Picture(f"{heading}: {name}", path, heading))
    return pictures


def _words_section(
    towers: tuple[TextEncoder, TextEncoder],
    texts: tuple[str, str],
    vectors: list[np.ndarray],
    states: list[Activations],
    settings: ReportSettings,
) -> Section:
    tables = []
    for index, side in enumerate(SIDES):
        effects = attenuation(towers[index], texts[index], vectors[1 - index])
        most = max(effect.change for effect in effects)
        words = [Keyword(effect.word, (), False) for effect in effects]
        if states:
            words = keywords(
                states[index], settings.cells, settings.change, settings.share
            )
        rows: list[list[Cell]] = [
            [
                Strong(word.word) if word.keyword else word.word,
                *("-" if n is None else str(n) for n in word.counts),
                Bar(effect.change, most),
                f"{effect.cosine:+.3f}",
            ]
            for word, effect in zip(words, effects, strict=True)
        ]
        directions = _DIRECTIONS[: len(words[0].counts)]
        header = [
            "Word", *directions, "Change of the vector without the word",
            "Adds to the cosine",
        ]  # fmt: skip
        bars = [1 + len(directions)]
        tables.append(Table(header, rows, f"The {side}", text_columns=bars))
    text = (
        "A bar is the change of the text's vector if the word is left out: 1 - "
        "cosine of the vectors with and without the word. A short bar means "
        "that the encoder attenuates the word. The last column is what the "
        "word adds to the cosine with the other text: without the word, the "
        "cosine would be lower by this number."
    )
    if states:
        text = (
            f"A count says how many of the {settings.cells} most active cells "
            "a word changes. A word changes a cell if the cell's output "
            f"changes at the word by at least {settings.change:g} of the final "
            "output. The word that "
            "is read first changes every cell, and so has no count. Keywords "
            f"are bold: they change more than {settings.share:.0%} of the "
            f"{settings.cells} cells in each direction of reading. " + text
        )  # fmt: skip
    title = "How much each word counts"
    return Section(title + " (Tables I and II)" * bool(states), tables, text)


class ReportTexts(NamedTuple):
    """Texts of a data set for a report."""

    titles: list[str]  # distinct titles, in the order of the data
    pairs: list[Pair]  # a query, and a clicked title or the best judged title
    contexts: list[str]  # clicks as "QUERY TITLE"; without clicks, the titles
    bad_lines: dict[str, int]  # reason -> number of skipped lines


def read_report_texts(
    data: str,
    max_bad_lines: int = 0,
    most: int = 60_000,
    pairs: int = 1000,
    fields: str | None = None,
) -> ReportTexts:
    """Reads the first titles and contexts (up to `most`), and random pairs."""
    log: ClickLog | None
    titles: Iterable[str]
    clicks: Iterable[Pair] = ()
    if is_collection(data):
        collection = open_collection(data, fields)
        log = collection.clicks
        if log:
            log = ClickLog(log.paths, max_bad_lines)
        elif collection.is_prepared:
            clicks = (pair for pair, *_ in collection.training_clicks())
        titles = collection.documents.values()
        candidates = []
        for query, grades in collection.qrels(collection.last_split).items():
            best = max(grades, key=lambda document: grades[document])
            if grades[best] > 0:
                candidates.append(
                    Pair(collection.queries[query], collection.documents[best])
                )
    else:
        log = open_log(data, max_bad_lines=max_bad_lines)
        titles = log.documents()
        candidates = [Pair(q, d) for q, d in dict(islice(log, most)).items()]
    order = np.random.default_rng(0).permutation(len(candidates))
    titles = list(islice(dict.fromkeys(titles), most))
    contexts = [f"{q} {d}" for q, d in islice(log or clicks, most)] or titles
    return ReportTexts(
        titles,
        [candidates[row] for row in order[:pairs]],
        contexts,
        log.bad_lines() if log and max_bad_lines else {},
    )
