"""Parses and formats the lines of click logs, and counts bad lines."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data.line_reader import BOM
from keras_lstm_dssm.errors import InputError

_LONGEST = 1 << 20


class Pair(NamedTuple):
    """Holds a query and the title that was clicked for it.

    Example:
    >>> Pair("hex bolt", "steel hex bolt").document
    'steel hex bolt'
    """

    query: str
    document: str


def click_line(pair: Pair) -> str:
    """Formats a click as a line; white space becomes single spaces."""
    query, document = (" ".join(text.split()) for text in pair)
    return f"{query}\t{document}\n"


def parse_line(line: bytes) -> Pair | str:
    r"""Parses a line into a click, or returns what is wrong with the line.

    A byte order mark at the start of a field (which concatenated logs have),
    white space around it and a carriage return at the end are removed.

    >>> parse_line(b" angle bracket\t12-Gauge Angle\r")
    Pair(query='angle bracket', document='12-Gauge Angle')
    >>> parse_line(b"angle bracket")
    'no tab'
    """
    if len(line) > _LONGEST:
        return f"a line of more than {_LONGEST >> 20} MB"
    if b"\0" in line:
        return "a NUL byte"
    fields = [line_field(field) for field in line.split(b"\t")]
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


def line_field(field: bytes) -> bytes:
    r"""Removes white space around a field, and a byte order mark before it.

    >>> line_field(b" angle bracket\r")
    b'angle bracket'
    """
    return field.strip().removeprefix(BOM).strip()


def find_bad(chunk: bytes) -> Iterator[tuple[int, str]]:
    """Yields the index of each bad line, and what is wrong with it.

    Args:
        chunk: Whole lines, each ended by a line feed.
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
        # Each line has one tab, so a line can only be bad if a side is
        # empty, and then a side begins with white space.
        sure = (data[starts] > ord(" ")) & (data[tabs + 1] > ord(" "))
        sure &= ends - starts <= _LONGEST
        suspects = np.flatnonzero(~sure).tolist()
    for index in suspects:
        problem = parse_line(chunk[starts[index] : ends[index]])
        if isinstance(problem, str):
            yield index, problem


class BadLines:
    """Counts the bad lines of one pass over a file, and raises above a limit.

    Args:
        allowed: The number of bad lines that do not stop the pass.
        expected: What a good line has, for the message.
        programs: The programs that can leave bad lines out.

    Attributes:
        counts: Counter of the bad lines, by what was wrong with them.

    Example:
    >>> bad = BadLines(allowed=1)
    >>> bad.add("a.tsv", 2, "no tab")
    >>> bad.add("a.tsv", 9, "2 tabs")
    Traceback (most recent call last):
    ...
    keras_lstm_dssm.errors.InputError: a.tsv:9: found 2 tabs, expected ...
    """

    def __init__(
        self,
        allowed: int,
        expected: str = "query TAB clicked title in UTF-8",
        programs: str = "lstm-dssm-train, lstm-dssm-split",
    ) -> None:
        self.allowed = allowed
        self._expected = expected
        self._programs = programs
        self.counts: Counter[str] = Counter()

    def add(self, path: str, number: int | None, problem: str) -> None:
        """Counts a bad line.

        Args:
            path: The file.
            number: The line number, from 1; `None` for the file as a whole.
            problem: What is wrong with the line.

        Raises:
            InputError: There are more bad lines than allowed.
        """
        self.counts[problem] += 1
        if self.counts.total() <= self.allowed:
            return
        location = f"{path}:{number}" if number else path
        advice = "correct or remove it"
        if self.allowed:
            advice += (
                f"; with it there are {self.counts.total()} bad lines"
                f" ({describe_bad(self.counts)}), more than"
                f" --max_bad_lines={self.allowed}"
            )
        else:
            advice += (
                ", or leave such lines out with --on_bad_line=skip"
                f" ({self._programs})"
            )
        raise InputError(
            f"{location}: found {problem}, expected {self._expected}: {advice}"
        )


def describe_bad(counts: dict[str, int]) -> str:
    """Lists counts of bad lines by what was wrong, the most frequent first.

    >>> describe_bad({"2 tabs": 1, "no tab": 3})
    'no tab: 3, 2 tabs: 1'
    """
    return ", ".join(f"{k}: {n:,}" for k, n in Counter(counts).most_common())


def _has_whole_line_ends(chunk: bytes) -> bool:
    # Most chunks have no CR, and searching is faster than counting.
    return b"\r" not in chunk or chunk.count(b"\r") == chunk.count(b"\r\n")


def _is_plain_utf8(chunk: bytes) -> bool:
    try:
        return BOM not in chunk and bool(chunk.decode())
    except UnicodeDecodeError:
        return False
