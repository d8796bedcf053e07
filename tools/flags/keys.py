"""Print the key sentences and the key words of a page.

The page is a text file, compressed by gzip if it ends in .gz, or - for
standard input. The sentences with the largest probability of being key come
first, then the words that the page's vector predicts best; these need not
occur in the page. Each line has a probability, two spaces, and the sentence or
word.

Example:
  lstm-dssm-keys --run=KEYVEC_RUN page.txt
  lstm-dssm-keys --run=KEYVEC_RUN --sentences=3 --words=5 - < page.txt
"""

from keras_lstm_dssm.command_line import CommandLine, definers, new_flags

FLAGS = new_flags()
define = definers(FLAGS)
define.string(
    "run", None, "Folder of the run of a KeyVec that lstm-dssm-train wrote."
)
define.integer("sentences", 5, "Number of key sentences.", 1)
define.integer("words", 10, "Number of key words.", 1)

COMMAND_LINE = CommandLine(__doc__, FLAGS, required=["run"], arguments=True)
