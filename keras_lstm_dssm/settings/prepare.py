"""Settings of `lstm-dssm-prepare`: sources, columns, and rules for splits."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.fields import Settings, named_weights, setting

DEFAULT_ACTIONS = "click:1,click_through:1,item_click:1"
"""Default actions that count as clicks, and their weights."""

_ACTIONS_EXAMPLE = "click:1,purchase:3"

_FIXED_RULES = (
    "text", "tags", "dev_percent", "test_percent", "seed", "test_after",
    "double_click_seconds",
)  # fmt: skip
"""Settings of a data folder that `append` must not change."""


@dataclasses.dataclass(frozen=True)
class PrepareSettings(Settings):
    """Holds the sources, the columns and the rules of a data folder.

    A source is a path, a glob or a folder, or several of these, separated by
    commas. The format is parquet, CSV, TSV, JSON lines or a JSON array. All
    formats but parquet may be compressed (.gz).

    Attributes:
        catalogue: The products: one or more rows for each product. In Python
            also a DataFrame of pandas, polars or Arrow. Without a catalogue
            each clicked text is a product.
        clicks: The log: a row for each click, with the query and the product.
            In Python also a DataFrame. Without a log, products can be exported
            for search, but no model can be trained; `append` adds a log later.
        ubi: User Behavior Insights: a folder or files of queries and events.
        judgements: Rows of query, product and grade, which form the test split.
        id: Column of the product's id in the catalogue.
        title: Column of the product's title.
        text: Columns of the catalogue that encoders read after the title.
        tags: Columns of the catalogue by which a search can be restricted.
            Each value becomes a tag NAME:VALUE.
        query: Column of the query in the log.
        clicked: Column of the clicked product's id in the log. Without a
            catalogue: column of the clicked product's title in the log.
        time: Column of the time in the log: ISO 8601, or seconds, milliseconds
            or microseconds since 1970.
        time_format: Format of the log's times, such as %d/%m/%Y %H:%M:%S for
            31/12/2026 23:59:00. Needed if the times are neither ISO 8601 nor
            counted from 1970.
        session: Column of the session or of the user in the log.
        weight: Column of a click's weight, or of the number of clicks.
        action: Column of the user's action in the log.
        actions: The actions that count as clicks, and their weights, such as
            click:1,add_to_cart:2,purchase:3.
        grade: Column of the grade in the judgements.
        double_click_seconds: A click is left out if an equal click (same
            product, query and session) came at most this many seconds before.
        dev_percent: Percentage of queries for model selection (dev).
        test_percent: Percentage of queries for the final evaluation (test).
        seed: Seed of the division of queries into splits.
        test_after: Clicks from this time on form the test split: a date,
            YYYY-MM-DD, or a time of ISO 8601. By default the test split is
            `test_percent` of the queries.
        max_bad_percent: Largest percentage of bad rows: rows that cannot be
            read, rows without a query or an id, and rows with a wrong weight or
            time. If more rows are bad, no folder is written.
        append: Add the sources to an existing data folder, and use the folder's
            columns, rules and splits. A catalogue replaces the folder's
            catalogue.

    Raises:
        InputError: A value is out of bounds, or there is no source.
    """

    noun: ClassVar[str] = "data folder"

    catalogue: Any = None
    clicks: Any = None
    ubi: Any = None
    judgements: Any = None
    id: str | None = None
    title: str | None = None
    text: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    query: str | None = None
    clicked: str | None = None
    time: str | None = None
    time_format: str | None = None
    session: str | None = None
    weight: str | None = None
    action: str | None = None
    actions: str | None = None
    grade: str | None = None
    double_click_seconds: float = setting(1.0, least=0)
    dev_percent: int = setting(5, least=0, most=99)
    test_percent: int = setting(10, least=0, most=99)
    seed: int = setting(0, least=0)
    test_after: str | None = None
    max_bad_percent: float = setting(5.0, least=0, most=100)
    append: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("text", "tags"):
            object.__setattr__(self, name, tuple(getattr(self, name) or ()))
        least = int(self.test_after is None and self.judgements is None)
        if not least <= self.dev_percent + self.test_percent < 100:
            raise InputError(
                f"dev_percent is {self.dev_percent} and test_percent is"
                f" {self.test_percent}: expected a sum of {least} to 99"
            )
        for name in ("catalogue", "clicks", "ubi", "judgements"):
            if isinstance(getattr(self, name), str) and not getattr(self, name):
                object.__setattr__(self, name, None)
        sources = self.catalogue, self.clicks, self.ubi
        if all(source is None for source in sources) and not self.append:
            raise InputError(
                "clicks is missing: expected a log (clicks, or ubi), a"
                " catalogue, or both"
            )
        self.weight_of_action()

    def weight_of_action(self) -> dict[str, float]:
        """Returns the weight of each action, or raises `InputError`."""
        text = self.actions or DEFAULT_ACTIONS
        actions = named_weights("actions", text, _ACTIONS_EXAMPLE)
        if not all(actions.values()):
            raise InputError(
                f"actions is {text!r:.80}: expected weights above 0, such as"
                f" {_ACTIONS_EXAMPLE}"
            )
        return actions

    def with_stored(self, rules: Mapping[str, Any]) -> "PrepareSettings":
        """Returns these settings, with `rules` of a data folder as defaults.

        Raises `InputError` if this would change a setting of `_FIXED_RULES`.
        """
        stored = self.replace(**rules)
        changes = {}
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            if name not in rules or value == field.default:
                continue
            if name in _FIXED_RULES and value != getattr(stored, name):
                raise InputError(
                    f"{name} is {value!r:.60}, expected"
                    f" {getattr(stored, name)!r:.60} as in the data folder:"
                    " leave it out"
                )
            changes[name] = value
        return stored.replace(**changes)

    def rules(self) -> dict[str, Any]:
        """Returns all settings except the sources and `append`."""
        skipped = ("catalogue", "clicks", "ubi", "judgements", "append")
        names = (field.name for field in dataclasses.fields(self))
        return {n: getattr(self, n) for n in names if n not in skipped}
