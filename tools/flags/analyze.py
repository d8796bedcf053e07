r"""Show what a trained model represents of a text, on one HTML page.

Example:
  lstm-dssm-analyze --run=RUN --query="hotels in shanghai" \
      --document="shanghai hotels accommodation" --output=report.html
  lstm-dssm-analyze --run=RUN --data=api --claims --output=report.html

The page has the paper's Figs. 4 to 7 and Tables I to III for a query and a
title, the attenuation of each word, the nearest titles and a map of titles.
With --claims it also measures, on the queries and titles of the data, whether
the words that the model attenuates are stop words, how much of the cosine
remains with the keywords alone, and whether the words of a cell are similar.
With --projector, titles and vectors are written into RUN/logs for TensorBoard.

For the run of an MV-LSTM, the page has the interaction matrices of some test
queries with a right and a wrong answer, and the words that match best. For that
of a KeyVec it has some test documents with their key sentences and key words,
and a map of documents.
"""

from keras_lstm_dssm.command_line import CommandLine
from keras_lstm_dssm.tools.analyze_flags import new_analyze_flags

FLAGS = new_analyze_flags()

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["run", "output"])
