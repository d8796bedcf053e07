r"""Train and measure the systems of a paper's tables on one or more data sets.

Example:
  lstm-dssm-table --paper=mv_lstm --data=FOLDER,api_sentences --seeds=3 \
      --output=OUT
  lstm-dssm-table --paper=table_iv --data=FOLDER --systems=bm25,lstm_96 \
      --output=OUT

`--paper=table_iv` (or lstm_dssm) makes Table IV of Palangi et al. 2016, see
lstm-dssm-table_iv. `--paper=mv_lstm` makes Tables 2, 3 and 5 of Wan et al.
2016: pair scorers on the judged lists of each query, trained on the lists of
the split train. P@1, MRR and the other measures are exact expectations over
the orders of equal scores. `--data` is `api_sentences`, a BEIR folder with the
splits train, dev and test, or several separated by commas.

`--paper=keyvec` makes Tables 1 and 2 of Bi and Ma 2017: retrieval and
clustering by vectors of documents. `--data` is `api_documents` or a folder of
documents with the splits train, dev and test, queries of dev and test, or
classes, or both.

The learning rate is chosen on dev by the same small search for all neural
systems, and so is the epoch; the words of baselines, and k1 and b of BM25, are
chosen on dev, too.

OUT holds table.md, table.json, table.html, chart.png, dev.png and .csv; with
--misspelled robustness.md, .json and .png; and systems/NAME/seed_S/ with the
measures and the TREC runs. With several data sets each has a folder in OUT,
and OUT/table.* show all of them. Finished systems are not run again, so that
a table can be interrupted, and more systems or seeds can be named later. The
exit code is 1 if a system failed; the table then holds the others.
"""

from keras_lstm_dssm.command_line import CommandLine
from keras_lstm_dssm.settings.papers import PAPER_OPTIONS
from keras_lstm_dssm.tools.table_flags import table_flags

FLAGS = table_flags(list(PAPER_OPTIONS))

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["paper", "data", "output"])
