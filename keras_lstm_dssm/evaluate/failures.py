"""Compares a model with BM25, and lists queries on which the model fails."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.evaluate.titles import BM25, MODEL, Measured, Report
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.evaluation.significance import (
    randomisation_test,
    spread_of,
)
from keras_lstm_dssm.evaluation.task import MAIN_MEASURES, RETRIEVE, means
from keras_lstm_dssm.pages import Section, Table, write_html
from keras_lstm_dssm.settings.fields import RANDOM_ORDER
from keras_lstm_dssm.settings.programs import TitleSettings

PAGE = 10  # number of titles on a page of results
_SHOWN = 3  # maximum number of titles in `clicked`, `found` and `on_pages`
_WIDTH = 60  # largest number of characters of a text in a terminal
_LEVEL = 0.05  # a difference is significant if p is smaller
_RESAMPLES = 10_000
_USELESS = 0.995  # judgements are useless if random order is this good

Failures = dict[str, Any]
"""The result of `find_failures`: a part of the file that `--json` writes."""


def tell_failures(
    measured: Measured,
    clicks: Mapping[str, float],
    settings: TitleSettings,
    report: Report,
) -> dict[str, Any]:
    """Prints and returns the comparison with BM25, and the failures.

    If `settings.html` is set, also writes an HTML page.
    """
    verdict = compare_with_bm25(measured)
    failures = find_failures(measured, clicks, settings.queries)
    report("\n" + verdict["sentence"])
    ranked, by_query = measured.ranked, measured.by_query
    if ranked != MODEL and MODEL in by_query:
        measure = verdict["measure"]
        value, model = (
            100 * mean(by_query[name], [measure])[measure]
            for name in (ranked, MODEL)
        )
        if model > value:
            report(
                f"The model alone is better than the {ranked} here: {measure}"
                f" {model:.2f} against {value:.2f}"
            )
    report("\n".join(failure_lines(failures)))
    if settings.html:
        title = f"{ranked}: {settings.split}, {measured.mode}"
        sections = failure_sections(measured, failures)
        write_html(settings.html, title, sections, f"{verdict['sentence']}.")
        report(f"wrote {settings.html}")
    return {"verdict": verdict, "failures": failures}


def compare_with_bm25(measured: Measured) -> dict[str, Any]:
    """Tests if the evaluated system and BM25 differ; see `evaluate_run`."""
    name, by_query = measured.ranked, measured.by_query
    measure = MAIN_MEASURES[measured.mode]
    model, bm25, random_order = (
        mean(by_query[system], [measure])[measure]
        for system in (name, BM25, RANDOM_ORDER)
    )
    difference, interval = spread_of(by_query[name], by_query[BM25])[measure]
    differences = [
        by_measure[measure] - by_query[BM25][query][measure]
        for query, by_measure in by_query[name].items()
    ]
    p = 1.0
    if any(differences):
        p_values = randomisation_test(np.array(differences), _RESAMPLES)
        p = float(p_values.item())
    metrics = (
        f"{measure} {100 * model:.2f} against {100 * bm25:.2f}"
        f" ({100 * difference:+.2f} ± {100 * interval:.2f},"
        f" {len(differences):,} queries)"
    )
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if random_order >= _USELESS:
        sentence = (
            "These judgements cannot tell systems apart: a random order has"
            f" {measure} {100 * random_order:.2f}; give --mode=retrieve"
        )
    elif not any(differences):
        sentence = (
            f"The {name} is as good as BM25 for each query: {measure}"
            f" {100 * model:.2f}, {len(differences):,} queries"
        )
    elif p < _LEVEL:
        order = "better" if difference > 0 else "worse"
        sentence = (
            f"The {name} is {order} than BM25: {metrics}; this is not chance"
            f" ({chance})"
        )
    else:
        sentence = (
            f"The {name} does not differ significantly from BM25: {metrics};"
            f" this may be chance ({chance})"
        )
    return {
        "measure": measure,
        "difference": difference,
        "interval": interval,
        "p": p,
        "sentence": sentence,
    }


def find_failures(
    measured: Measured,
    clicks: Mapping[str, float],  # query id -> number of clicks, or empty
    listed: int,  # largest number of queries in a list
) -> Failures:
    """Lists the worst and the most frequent queries; see `evaluate_run`."""
    measure = MAIN_MEASURES[measured.mode]
    values = {
        query: by_measure[measure]
        for query, by_measure in measured.by_query[measured.ranked].items()
    }
    order = sorted(values, key=lambda q: (values[q], -clicks.get(q, 0.0)))
    worst = [query for query in order if values[query] < 1][:listed]

    def entries(queries: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {measure: values[query], **_entry(measured, query, clicks)}
            for query in queries
        ]

    failures: Failures = {"measure": measure, "worst": entries(worst)}
    if clicks:
        frequent = sorted(values, key=lambda query: -clicks[query])
        failures["frequent"] = entries(frequent[:listed])
        total = np.cumsum([clicks[query] for query in frequent])
        size = int(np.searchsorted(total, total[-1] / 2)) + 1
        for name, queries in (
            ("head", frequent[:size]),
            ("tail", frequent[size:]),
        ):
            if queries:
                failures[name] = {"queries": len(queries)}
                for system, by_id in measured.by_query.items():
                    subset = {query: by_id[query] for query in queries}
                    failures[name][system] = mean(subset, [measure])[measure]
    if measured.mode == RETRIEVE:
        failures["on_pages"] = _on_pages(measured)
    return failures


def _entry(
    measured: Measured, query: str, clicks: Mapping[str, float]
) -> dict[str, Any]:
    task, ranked = measured.task, measured.run[query]
    grades = task.qrels[query]
    relevant = sorted(
        (d for d in grades if grades[d] >= task.min_relevant),
        key=lambda d: -grades[d],
    )
    rank = next((n for n, d in enumerate(ranked, 1) if d in relevant), None)
    return {
        "query": task.queries[query],
        "rank": rank,
        "clicks": clicks.get(query),
        "clicked": [task.documents[d] for d in relevant[:_SHOWN]],
        "found": [task.documents[d] for d in list(ranked)[:_SHOWN]],
    }


def _on_pages(measured: Measured) -> list[dict[str, Any]]:
    documents = measured.task.documents
    page_counts = Counter(
        title
        for ranked in measured.run.values()
        for title in {documents[d] for d in list(ranked)[:PAGE]}
    )
    by_frequency = sorted(
        page_counts.items(), key=lambda pair: (-pair[1], pair[0])
    )
    return [
        {"title": title, "share": count / len(measured.run)}
        for title, count in by_frequency[:_SHOWN]
    ]


def failure_lines(failures: Failures) -> Iterator[str]:
    """Yields the results of `find_failures` as lines for a terminal."""
    measure = failures["measure"]
    for name, queries in (
        ("head", "most frequent queries, with half of the clicks"),
        ("tail", "rarer queries"),
    ):
        if name in failures:
            by_system = {**failures[name]}
            count = by_system.pop("queries")
            yield (
                f"{name} ({count:,} {queries}): {measure} "
                + ", ".join(f"{n} {100 * v:.2f}" for n, v in by_system.items())
            )
    for page in failures.get("on_pages", [])[:1]:
        yield (
            f"the most frequent title is on {100 * page['share']:.1f} % of the"
            f" pages of {PAGE} results: {_short(page['title'])}"
        )
    for name, heading in _HEADINGS.items():
        if not failures.get(name):
            continue
        yield f"\n{heading} ({measure}, rank of the first relevant title)"
        for entry in failures[name]:
            clicks = _clicks(entry)
            yield (
                f"{100 * entry[measure]:7.2f} {_rank(entry):>5}"
                f"  {_short(entry['query'])}{clicks and f'  ({clicks} clicks)'}"
            )
            for kind in ("clicked", "found"):
                titles = " | ".join(map(_short, entry[kind]))
                yield f"{'':15}{kind + ':':<9}{titles or 'nothing'}"
    if "frequent" not in failures:
        yield "\nthe data does not tell how often each query was clicked"


_HEADINGS = {"worst": "Worst queries", "frequent": "Most frequent queries"}


def _rank(entry: Mapping[str, Any]) -> str:
    return "none" if entry["rank"] is None else f"{entry['rank']:,}"


def _clicks(entry: Mapping[str, Any]) -> str:
    return "" if entry["clicks"] is None else f"{entry['clicks']:,.10g}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def failure_sections(measured: Measured, failures: Failures) -> list[Section]:
    """Returns sections of the HTML page: metrics of all systems, failures."""
    measure = failures["measure"]
    results = means(measured.by_query)
    measures = list(results[measured.ranked])
    rows = [
        [system, *(f"{100 * values[name]:.2f}" for name in measures)]
        for system, values in results.items()
    ]
    sections = [
        Section("Metrics, in percent", [Table(["system", *measures], rows)])
    ]
    rows = [
        [name, f"{failures[name]['queries']:,}"]
        + [f"{100 * failures[name][system]:.2f}" for system in results]
        for name in ("head", "tail")
        if name in failures
    ]
    if rows:
        sections.append(
            Section(
                "Frequent and rare queries",
                [Table(["part", "queries", *results], rows)],
                "The head has the most frequent queries, with half of the"
                f" clicks; the tail has all others. Values are {measure}.",
            )
        )
    clicks = ["clicks"] * ("frequent" in failures)
    header = ["query", measure, "rank", *clicks, "clicked titles", "found"]
    for name, heading in _HEADINGS.items():
        if failures.get(name):
            rows = [
                [
                    entry["query"],
                    f"{100 * entry[measure]:.2f}",
                    _rank(entry),
                    *[_clicks(entry)] * len(clicks),
                    *(" | ".join(entry[k]) for k in ("clicked", "found")),
                ]
                for entry in failures[name]
            ]
            last = len(header) - 1
            table = Table(header, rows, text_columns=(last - 1, last))
            text = "The rank is the rank of the first relevant title."
            sections.append(Section(heading, [table], text))
    if failures.get("on_pages"):
        rows = [
            [page["title"], f"{100 * page['share']:.1f}"]
            for page in failures["on_pages"]
        ]
        sections.append(
            Section(
                "Most frequent titles",
                [Table(["title", "% of pages"], rows)],
                f"A page has {PAGE} results.",
            )
        )
    return sections
