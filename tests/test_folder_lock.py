import subprocess
import sys

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import lock_folder
from tests.bare_package import BARE_PACKAGE

HOLD = """
from keras_lstm_dssm.files import lock_folder
with lock_folder(sys.argv[1], "training"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time(tmp_path):
    folder = tmp_path / "new" / "folder"
    with subprocess.Popen(
        [sys.executable, "-c", BARE_PACKAGE + HOLD, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"locked\n"
        with (
            pytest.raises(InputError, match="another process is measuring he"),
            lock_folder(folder, "measuring"),
        ):
            pytest.fail("two processes have the lock")
        other.kill()
        other.wait()
        with lock_folder(folder, "measuring"):
            pass


def test_a_link_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / ".lock").symlink_to(other)
    with pytest.raises(OSError, match="symbolic"), lock_folder(tmp_path, "x"):
        pytest.fail("the lock is another file")
    assert other.read_text() == "kept"
