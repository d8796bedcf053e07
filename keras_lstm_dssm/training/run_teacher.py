"""The teacher of a run: opened, fits the clicks, stays the same."""

import os
from collections.abc import Sequence
from pathlib import Path

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import read_json, write_json
from keras_lstm_dssm.teacher import TeacherVectors

Teacher = str | os.PathLike[str] | TeacherVectors


def open_teacher(teacher: Teacher | None) -> TeacherVectors | None:
    """Opens a teacher's vectors.

    Args:
        teacher: Folder that `lstm-dssm-teach` has written, or its vectors, or
            `None`.

    Raises:
        InputError: The folder is wrong.
    """
    if teacher is None or isinstance(teacher, TeacherVectors):
        return teacher
    return TeacherVectors.open(teacher)


def check_knows(
    teacher: TeacherVectors, texts: Sequence[str], spec: str
) -> None:
    """Checks that each text has a vector.

    Args:
        teacher: The teacher.
        texts: The queries or the titles of the data.
        spec: Data specification of the clicks, for the message.

    Raises:
        InputError: A text has none.
    """
    missing = teacher.rows(texts) < 0
    if missing.any():
        raise InputError(
            f"{teacher.folder or 'teacher'}: has no vector of"
            f" {int(missing.sum()):,} texts of {spec}, the first"
            f" {texts[int(missing.argmax())]!r:.80}; expected all training"
            " queries and titles: run lstm-dssm-teach on these data, with"
            " another --output"
        )


def teacher_folder(teacher: Teacher | None, saved: bool) -> str | None:
    """Returns the folder of a teacher, for `config.json`, or `None`.

    Args:
        teacher: As `train` was given it.
        saved: Whether the run is written to a folder, to be resumed.

    Raises:
        InputError: The run is to be written, and the vectors are not those of
            a folder.
    """
    if isinstance(teacher, TeacherVectors):
        if teacher.folder is None and saved:
            raise InputError(
                "teacher has vectors of no folder, which a resumed run cannot"
                " read: give the folder of lstm-dssm-teach, or no output"
            )
        return teacher.folder
    return None if teacher is None else os.path.abspath(teacher)


def check_same_teacher(
    teacher: TeacherVectors, folder: Path, resumed: bool
) -> None:
    """Writes a hash of the teacher into a run, or compares it when resumed.

    Args:
        teacher: The teacher.
        folder: The folder of the run; the file is `teacher.json`.
        resumed: Whether the run was begun before.

    Raises:
        InputError: The run was begun with another teacher.
    """
    path = folder / "teacher.json"
    if not resumed:
        write_json(path, {"folder": teacher.folder, "sha256": teacher.sha256})
    elif read_json(path).get("sha256") != teacher.sha256:
        raise InputError(
            f"{teacher.folder}: found other vectors than those that the run in"
            f" {folder} was started with: restore the folder, or train anew in"
            " another --output"
        )
