"""Trains and measures the systems of Table IV of Palangi et al.

This is the work of the program lstm-dssm-table_iv. Its help and its
flags are in `tools/flags/table_iv.py`, which is imported first and without
TensorFlow.
"""

import sys

from keras_lstm_dssm.tools.flags.table_iv import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.table import table_work

run = COMMAND_LINE.program(table_work(FLAGS, "table_iv"))

if __name__ == "__main__":
    sys.exit(run())
