"""Is a model better than BM25, and which queries does it fail on?"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.evaluate.titles import BM25, MODEL, Measured, Report
from keras_lstm_dssm.evaluation.measures import QueryMeasures, mean
from keras_lstm_dssm.evaluation.significance import (
    randomisation_test,
    spread_of,
)
from keras_lstm_dssm.evaluation.task import MAIN_MEASURES, RETRIEVE, means
from keras_lstm_dssm.pages import Section, Table, write_html
from keras_lstm_dssm.settings.fields import RANDOM_ORDER
from keras_lstm_dssm.settings.programs import TitleSettings

PAGE = 10
"""Number of titles on a page of results."""

_SHOWN = 3  # titles of a query
_WIDTH = 60  # characters of a title in a terminal
_LEVEL = 0.05  # p-value below which a difference is called real
_RESAMPLES = 10_000
_ANY_ORDER = 0.995  # of a random order, which then is as good as any

Failures = dict[str, Any]
"""What `find_failures` returns, as `--json` writes it."""


def tell_failures(
    measured: Measured,
    clicks: Mapping[str, float],
    settings: TitleSettings,
    report: Report,
) -> dict[str, Any]:
    """Prints the verdict and the failing queries, and writes the page.

    Returns:
        `verdict` and `failures`, for the results as JSON.
    """
    verdict = compare_with_bm25(measured)
    failures = find_failures(measured, clicks, settings.queries)
    report("\n" + verdict["sentence"])
    if measured.ranked != MODEL and MODEL in measured.by_query:
        ranked, model = (
            100 * mean(measured.by_query[name], [measure])[measure]
            for measure in [verdict["measure"]]
            for name in (measured.ranked, MODEL)
        )
        if model > ranked:
            report(
                f"The model alone is better than the {measured.ranked} here:"
                f" {verdict['measure']} {model:.2f} against {ranked:.2f}"
            )
    report("\n".join(failure_lines(failures)))
    if settings.html:
        title = f"{measured.ranked}: {settings.split}, {measured.mode}"
        write_failures(settings.html, title, measured, verdict, failures)
        report(f"wrote {settings.html}")
    return {"verdict": verdict, "failures": failures}


def compare_with_bm25(measured: Measured) -> dict[str, Any]:
    """Tests whether the ranking system differs from BM25 over the queries.

    Returns:
        `measure`; the `difference` of its means, half its 95 % `interval`, and
        `p` of a paired randomisation test; and a `sentence` that says so.
    """
    name, by_query = measured.ranked, measured.by_query
    measure = MAIN_MEASURES[measured.mode]
    model, bm25, any_order = (
        mean(by_query[system], [measure])[measure]
        for system in (name, BM25, RANDOM_ORDER)
    )
    difference, interval = spread_of(by_query[name], by_query[BM25])[measure]
    differences = [
        of_query[measure] - by_query[BM25][query][measure]
        for query, of_query in by_query[name].items()
    ]
    p = 1.0
    if any(differences):
        found = randomisation_test(np.array(differences), _RESAMPLES)
        p = float(found.item())
    figures = (
        f"{measure} {100 * model:.2f} against {100 * bm25:.2f}"
        f" ({100 * difference:+.2f} ± {100 * interval:.2f},"
        f" {len(differences):,} queries)"
    )
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if any_order >= _ANY_ORDER:
        sentence = (
            "These judgements cannot tell systems apart: a random order has"
            f" {measure} {100 * any_order:.2f}; give --mode=retrieve"
        )
    elif not any(differences):
        sentence = (
            f"The {name} is as good as BM25 for each query: {measure}"
            f" {100 * model:.2f}, {len(differences):,} queries"
        )
    elif p < _LEVEL:
        order = "better" if difference > 0 else "worse"
        sentence = (
            f"The {name} is {order} than BM25: {figures}; this is not chance"
            f" ({chance})"
        )
    else:
        sentence = (
            f"The {name} is neither better nor worse than BM25 for sure:"
            f" {figures}; this may be chance ({chance})"
        )
    return {
        "measure": measure,
        "difference": difference,
        "interval": interval,
        "p": p,
        "sentence": sentence,
    }


def find_failures(
    measured: Measured, clicks: Mapping[str, float], listed: int
) -> Failures:
    """Lists the worst and the most frequent queries of an evaluation.

    Args:
        measured: The evaluation.
        clicks: Query id -> number of clicks; empty where it is not known,
            and the lists about frequent queries are left out.
        listed: The length of each list.

    Returns:
        `measure`; `worst` and `frequent`, lists of queries, each with `query`,
        its value of the measure, `rank` of the first relevant document,
        `clicks`, and the first titles `clicked` and `found`; `head`, the most
        frequent queries that have half of all clicks, and `tail`, the others,
        with the number of `queries` and the means; and, in a search,
        `on_pages`, the titles that are on most pages of results.
    """
    measure = MAIN_MEASURES[measured.mode]
    values = {
        query: of_query[measure]
        for query, of_query in measured.by_query[measured.ranked].items()
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
        for name, part in (
            ("head", frequent[:size]),
            ("tail", frequent[size:]),
        ):
            if part:
                failures[name] = {
                    "queries": len(part),
                    **_means_of(measured.by_query, part, measure),
                }
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


def _means_of(
    by_query: Mapping[str, QueryMeasures], part: Sequence[str], measure: str
) -> dict[str, float]:
    """Returns the means of systems over some of the queries."""
    return {
        name: mean({q: values[q] for q in part}, [measure])[measure]
        for name, values in by_query.items()
    }


def _on_pages(measured: Measured) -> list[dict[str, Any]]:
    """Returns the titles that are on most pages of results, with the share."""
    documents = measured.task.documents
    pages = Counter(
        title
        for ranked in measured.run.values()
        for title in {documents[d] for d in list(ranked)[:PAGE]}
    )
    most = sorted(pages.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        {"title": title, "share": number / len(measured.run)}
        for title, number in most[:_SHOWN]
    ]


def failure_lines(failures: Failures) -> Iterator[str]:
    """Yields the lines of `find_failures` that a terminal shows."""
    measure = failures["measure"]
    for part, what in (
        ("head", "most frequent queries, with half of the clicks"),
        ("tail", "rarer queries"),
    ):
        if part in failures:
            means_of = {**failures[part]}
            number = means_of.pop("queries")
            yield (
                f"{part} ({number:,} {what}): {measure} "
                + ", ".join(f"{n} {100 * v:.2f}" for n, v in means_of.items())
            )
    for most in failures.get("on_pages", [])[:1]:
        yield (
            f"the most frequent title is on {100 * most['share']:.1f} % of the"
            f" pages of {PAGE} results: {_short(most['title'])}"
        )
    for part in ("worst", "frequent"):
        if not failures.get(part):
            continue
        yield f"\n{_HEADINGS[part]} ({measure}, rank of the first relevant)"
        for entry in failures[part]:
            asked = "" if entry["clicks"] is None else _clicks(entry)
            yield (
                f"{100 * entry[measure]:7.2f} {_rank(entry):>5}"
                f"  {_short(entry['query'])}{asked and f'  ({asked} clicks)'}"
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


def write_failures(
    path: str | os.PathLike[str],
    title: str,
    measured: Measured,
    verdict: Mapping[str, Any],
    failures: Failures,
) -> None:
    """Writes an evaluation, its verdict and its failures as an HTML page."""
    sections = failure_sections(measured, failures)
    write_html(path, title, sections, verdict["sentence"] + ".")


def failure_sections(measured: Measured, failures: Failures) -> list[Section]:
    """Returns the metrics of all systems, and `find_failures`, for a page."""
    measure = failures["measure"]
    results = means(measured.by_query)
    names = list(results[measured.ranked])
    rows = [
        [system, *(f"{100 * values[name]:.2f}" for name in names)]
        for system, values in results.items()
    ]
    sections = [
        Section("Metrics, in percent", [Table(["system", *names], rows)])
    ]
    parts = {
        name: failures[name] for name in ("head", "tail") if name in failures
    }
    if parts:
        rows = [
            [name, f"{of['queries']:,}"]
            + [f"{100 * of[system]:.2f}" for system in results]
            for name, of in parts.items()
        ]
        sections.append(
            Section(
                "Frequent and rare queries",
                [Table(["part", "queries", *results], rows)],
                f"{measure} of the head, the most frequent queries with half"
                " of the clicks, and of the tail.",
            )
        )
    clicks = ["clicks"] * ("frequent" in failures)
    header = ["query", measure, "rank", *clicks, "clicked titles", "found"]
    for part, heading in _HEADINGS.items():
        if failures.get(part):
            rows = [
                [
                    entry["query"],
                    f"{100 * entry[measure]:.2f}",
                    _rank(entry),
                    *[_clicks(entry)] * len(clicks),
                    *(" | ".join(entry[k]) for k in ("clicked", "found")),
                ]
                for entry in failures[part]
            ]
            last = len(header) - 1
            table = Table(header, rows, text_columns=(last - 1, last))
            text = "The rank is that of the first relevant title."
            sections.append(Section(heading, [table], text))
    if failures.get("on_pages"):
        rows = [
            [most["title"], f"{100 * most['share']:.1f}"]
            for most in failures["on_pages"]
        ]
        sections.append(
            Section(
                "Titles on most pages",
                [Table(["title", "% of pages"], rows)],
                f"A page has {PAGE} results.",
            )
        )
    return sections
