"""Values of a recipe that are not its defaults, one for each simple field."""

import dataclasses
from typing import Any

from keras_lstm_dssm.settings.fields import Settings, types_of


def other_values(cls: type[Settings]) -> dict[str, Any]:
    """Returns field -> another value than its default, of simple fields."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        default, types = field.default, types_of(field)
        if choices := field.metadata.get("choices"):
            values[field.name] = next(c for c in choices if c != default)
        elif field.name == "fields":
            values[field.name] = "title:2,brand:0.5"
        elif bool in types:
            values[field.name] = not default
        elif int in types:
            values[field.name] = default + 1
        elif float in types:
            values[field.name] = default / 2 or 0.5
    return values
