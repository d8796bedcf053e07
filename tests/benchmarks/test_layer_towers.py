"""The timing of towers of Keras layers runs, on any clicks."""

from tests.fresh_process import FreshProcesses

CODE = """
import sys
from benchmarks import layer_towers

layer_towers.PAIRS, layer_towers.BATCH, layer_towers.EPOCHS = 8, 4, 1
layer_towers.main(sys.argv[1])
"""


def test_three_comparisons_in_turn(
    fresh_process: FreshProcesses, tmp_path
) -> None:
    clicks = tmp_path / "clicks.tsv"
    lines = [f"query {n // 2}\ttitle {n // 4}\n" for n in range(16)]
    clicks.write_text("".join(lines))
    first, *rows = fresh_process(CODE, clicks)
    # Every second line.
    assert first == "8 pairs of 8 distinct queries and 4 distinct titles"
    assert [row.split()[0] for row in rows] == ["TwoTower"] * 3
