"""The lines of a click log: what a click is, and how bad lines are counted."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.text_files import BOM
from keras_lstm_dssm.errors import InputError

LONGEST = 1 << 20


class Pair(NamedTuple):
    """One click."""

    query: str
    document: str


def parse_line(line: bytes) -> Pair | str:
    r"""Returns the click of a line, or what is wrong with the line.

    A byte order mark at the start of a field (logs that were put together
    have some), white space around it and a CR at the end are left out.

    >>> parse_line(b" angle bracket\t12-Gauge Angle\r")
    Pair(query='angle bracket', document='12-Gauge Angle')
    >>> parse_line(b"angle bracket")
    'no tab'
    """
    if len(line) > LONGEST:
        return f"a line of more than {LONGEST >> 20} MB"
    if b"\0" in line:
        return "a NUL byte"
    fields = [
        field.strip().removeprefix(BOM).strip() for field in line.split(b"\t")
    ]
    if len(fields) != 2:
        return f"{len(fields) - 1} tabs" if len(fields) > 1 else "no tab"
    query, document = fields
    if not query:
        return "an empty query"
    if not document:
        return "an empty title"
    if b"\r" in query or b"\r" in document:
        return "a carriage return within the line"
    try:
        return Pair(query.decode(), document.decode())
    except UnicodeDecodeError:
        return "invalid UTF-8"


def find_bad(chunk: bytes) -> Iterator[tuple[int, str]]:
    """Yields the place, from 0, of each bad line, and what is wrong with it.

    Args:
        chunk: Whole lines, each ended by a newline.
    """
    data = np.frombuffer(chunk, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    tabs = np.flatnonzero(data == ord("\t"))
    suspects: Iterable[int] = range(len(ends))
    if (
        len(tabs) == len(ends)
        and ((starts <= tabs) & (tabs < ends)).all()
        and b"\0" not in chunk
        and _has_whole_line_ends(chunk)
        and (chunk.isascii() or _is_plain_utf8(chunk))
    ):
        # One tab in each line, so that only the sides remain to be looked
        # at, and only where one begins with white space.
        sure = (data[starts] > ord(" ")) & (data[tabs + 1] > ord(" "))
        sure &= ends - starts <= LONGEST
        suspects = np.flatnonzero(~sure).tolist()
    for index in suspects:
        found = parse_line(chunk[starts[index] : ends[index]])
        if isinstance(found, str):
            yield index, found


class BadLines:
    """Counts the bad lines of one pass over a log, and stops past a limit.

    Args:
        allowed: How many there may be.

    Attributes:
        found: Counter, by what was wrong.

    Example:
    >>> bad = BadLines(allowed=1)
    >>> bad.add("a.tsv", 2, "no tab")
    >>> bad.add("a.tsv", 9, "2 tabs")
    Traceback (most recent call last):
    ...
    keras_lstm_dssm.errors.InputError: a.tsv:9: found 2 tabs, expected ...
    """

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.found: Counter[str] = Counter()

    def add(self, path: str, number: int | None, found: str) -> None:
        """Counts a line.

        Args:
            path: The file.
            number: The line, from 1; `None` for the file as a whole.
            found: What is wrong.

        Raises:
            InputError: It is one too many.
        """
        self.found[found] += 1
        if self.found.total() <= self.allowed:
            return
        place = f"{path}:{number}" if number else path
        advice = "correct or remove it"
        if self.allowed:
            advice += (
                f"; with it there are {self.found.total()} bad lines"
                f" ({describe_bad(self.found)}), more than"
                f" --max_bad_lines={self.allowed}"
            )
        else:
            advice += (
                ", or leave such lines out with --on_bad_line=skip"
                " (lstm-dssm-train, lstm-dssm-split)"
            )
        raise InputError(
            f"{place}: found {found}, expected query TAB clicked title in"
            f" UTF-8: {advice}"
        )


def describe_bad(found: dict[str, int]) -> str:
    """Lists bad lines by what was wrong, the most frequent first.

    >>> describe_bad({"2 tabs": 1, "no tab": 3})
    'no tab: 3, 2 tabs: 1'
    """
    return ", ".join(f"{k}: {n:,}" for k, n in Counter(found).most_common())


def _has_whole_line_ends(chunk: bytes) -> bool:
    # Nearly all chunks have no CR, which is seen much faster than counted.
    return b"\r" not in chunk or chunk.count(b"\r") == chunk.count(b"\r\n")


def _is_plain_utf8(chunk: bytes) -> bool:
    try:
        return BOM not in chunk and bool(chunk.decode())
    except UnicodeDecodeError:
        return False
