"""Relevance grades of 0 to 4 from numbers of clicks."""

import math
from collections.abc import Mapping

MAX_GRADE = 4


def click_grades(clicks: Mapping[str, int]) -> dict[str, int]:
    """Grades the documents of one query by their clicks.

    NDCG has the gain 2^grade - 1, so a number of clicks must not be used as
    a grade: a document with 30 clicks would count a thousand times as much
    as one with 20. The grade here is the one whose gain, of at most 15, is
    nearest (in its logarithm) to the share of the clicks:

        grade = round(log2(1 + 15 * clicks / most clicks of the query))

    and at least 1 for a document that was clicked. So a document gets grade
    4 from 69 % of the clicks of the query's most clicked document, 3 from
    31 %, 2 from 12 %, 1 below; and 0 without clicks. NDCG is computed query
    by query, so the grades need not be comparable between queries.

    Args:
        clicks: Document id -> number of clicks for the query.

    Returns:
        Document id -> grade, in the same order.

    Example:
    >>> click_grades({"d1": 30, "d2": 20, "d3": 10, "d4": 1, "d5": 0})
    {'d1': 4, 'd2': 3, 'd3': 3, 'd4': 1, 'd5': 0}
    """
    most = max(clicks.values(), default=0)
    return {
        document: max(
            1, round(math.log2(1 + (2**MAX_GRADE - 1) * count / most))
        )
        if count > 0
        else 0
        for document, count in clicks.items()
    }
