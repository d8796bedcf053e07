"""How often the queries of a collection were clicked, where the data tells."""

from pathlib import Path

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.prepare.folder import LOGS
from keras_lstm_dssm.text_files import cleaned

_AT_ONCE = 1 << 16


def query_clicks(collection: Collection, split: str) -> dict[str, float]:
    """Returns query id -> number of clicks, of the queries of a split.

    The numbers come from the logs that `prepare` keeps in its folder, or from
    judgements that are numbers of clicks. Of other data, the result is empty.
    """
    qrels = collection.qrels(split)
    if collection.has_click_counts:
        return {query: float(sum(of.values())) for query, of in qrels.items()}
    logs = sorted(Path(collection.folder, LOGS).glob("[0-9]*.parquet"))
    if not logs:
        return {}
    import duckdb

    clicks = {collection.queries[query].casefold(): 0.0 for query in qrels}
    rows = duckdb.execute(
        "SELECT q, sum(weight) FROM read_parquet($1) WHERE weight > 0"
        " AND q IS NOT NULL GROUP BY q",
        [list(map(str, logs))],
    )
    while block := rows.fetchmany(_AT_ONCE):
        for text, weight in block:
            key = cleaned(text).casefold()
            if key in clicks:
                clicks[key] += float(weight)
    return {q: clicks[collection.queries[q].casefold()] for q in qrels}
