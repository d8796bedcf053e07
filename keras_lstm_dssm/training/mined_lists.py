"""Lists of clicked titles and of negatives that trained towers find."""

import gzip
import json
import os
import zlib
from pathlib import Path

from keras_lstm_dssm.data import ClickLog, JudgedList, clicked_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.files import open_gzip, replacing
from keras_lstm_dssm.models import TwoTower
from keras_lstm_dssm.training.run_folder import RunFolder

FILE_NAME = "mined_lists.json.gz"


class MinedLists:
    """Mines the negatives of a run once, before it starts, and keeps them.

    The lists are kept in a file, so that a run which is resumed trains on the
    same triples, even if the towers have been trained anew or removed since.

    Args:
        path: The file, `.json.gz`.
        log: The clicks whose queries and titles are mined.
        top: Negatives for each query, see `clicked_lists`.
        seed: Seed of negatives that are drawn, see `clicked_lists`.
    """

    def __init__(self, path: Path, log: ClickLog, top: int, seed: int) -> None:
        self.path = path
        self.log = log
        self.top = top
        self.seed = seed

    def mine(
        self, towers: TwoTower | str | os.PathLike[str]
    ) -> list[JudgedList]:
        """Finds the titles nearest to each query, and writes the file.

        Args:
            towers: A trained `TwoTower`, or the folder of its run.

        Raises:
            InputError: There is no such run, the encoders are not adapted,
                or a file of the log is wrong.
        """
        if not isinstance(towers, TwoTower):
            towers = RunFolder(towers).load_towers()
        if towers.needs_adapt:
            raise InputError(
                "negatives_from is a TwoTower that has not been adapted: "
                "expected a trained one"
            )
        # White space as in the lists, whose titles are the ids.
        titles = (" ".join(title.split()) for title in self.log.documents())
        index = Index(towers, titles)
        lists = list(clicked_lists(self.log, self.top, index, self.seed))
        with (
            replacing(self.path) as partial,
            gzip.open(partial, "wt", encoding="utf-8") as file,
        ):
            json.dump({"lists": lists}, file)
        return lists

    def read(self) -> list[JudgedList]:
        """Reads the lists that `mine` has written.

        Raises:
            InputError: The file is missing or damaged, or the log has another
                number of clicks.
        """
        try:
            with open_gzip(self.path) as file:
                lists = [JudgedList(*one) for one in json.load(file)["lists"]]
            mined = sum(len(one.positives) for one in lists)
        except (
            OSError, EOFError, zlib.error, ValueError, KeyError, TypeError
        ) as error:  # fmt: skip
            raise InputError(
                f"{self.path}: found no mined negatives ({error}); restore"
                " the file, or train anew in another --output"
            ) from error
        clicks = sum(1 for _ in self.log)
        if clicks != mined:
            raise InputError(
                f"{', '.join(self.log.paths[:3])}: found {clicks:,} clicks,"
                f" expected the {mined:,} that {self.path.name} was mined"
                " from: restore them, or train anew in another --output"
            )
        return lists
