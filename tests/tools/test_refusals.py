"""What programs refuse: exit code 1, one line that says why, nothing written.

For more of what cannot be trained see `training/test_wrong_input.py`.
"""

import importlib
import re
import shlex
import shutil
from pathlib import Path
from string import Formatter

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.training.document_targets import TARGETS_FILE
from tests.tools.conftest import saved_run

# A command -> the flags and words that are added to it, or take the place of
# flags of the same name -> the message. Names in braces are fixtures.
REFUSED = {
    "prepare --clicks={clicks} --output={new}": """
    --clicks= -> clicks is missing: expected a log (clicks, or ubi), a catalo
    --output= -> --output is missing
    --clicks=none.tsv -> none.tsv: no such file
    --clicks=, -> found no file of CSV, TSV, JSON or parquet
    --clicks={tmp_path}/new -> new: no such file
    --catalogue={clicks} -> found no column with a usual name for --id
    --output={tmp_path} -> is already there
    --output={clicks}/new -> found a file, expect
    --test_percent=95 -> dev_percent is 5 and test_percent is 95
    --dev_percent=-1 -> -1
    --query=q -> found no column 'q', expected --query to name one of: 1 (
    --test_after=2026-11-01 -> found no column of the time, which --test_after
    --test_after=today -> test_after is 'today': expected a date or a time of
    --actions=click -> actions is 'click': expected names and weights, such as
    --actions=click:0 -> actions is 'click:0': expected weights above 0, such as
    --ubi={clicks} -> clicks.tsv: found text, expected UBI as JSON or parquet
    --append --output={tmp_path} -> data.json: cannot be read (No such file or
    --max_bad_percent=101 -> --max_bad_percent=101
""",
    "train --data={collection_folder} --output={new} --preset=dssm": """
    --hard_negatives=1 --judged_negatives=1 -> are both set: expected one
    --set logq=1 --negatives=random -> negatives, but negatives is 'random'
    --teacher=TEACH -> teacher is used by word_sum and best_words only: leave it
    --negatives=in_batch --set n=3 -> n is not used with negatives=in_batch: lea
    --set mine_top=9 -> mine_top is not used without hard_negatives: leave it
    --mine_top=9 -> --mine_top is no flag: give --set mine_top=VALUE
    --preset=arc_i --words=trigrams --set min_count=2
        -> min_count is not used with words=trigrams: leave it out, or change
    --preset=arc_i --set skip_gram=0 --set skip_gram_epochs=9
        -> skip_gram_epochs is not used without skip_gram: leave it out
    --select=ari --dev={collection_folder} -> select is 'ari': expected one of
    --select=map -> select is not used without dev: leave it out, or set dev
    --judged_negatives=1 -> found no title with a score below 1
""",
    "train --data={clicks} --output={new}": """
    --data=nowhere.tsv -> nowhere.tsv
    --data= -> data is missing: expected
    --data={faulty} -> faulty.tsv:2
    --data={unclicked} -> clicks.tsv: found no training click, expected one or m
    --dev={unclicked} -> SHOP: found products without a log, expected queries of
    --data={faulty} --max_bad_lines=0 -> faulty.tsv:2: found no tab
    --resume -> no run here
    --output={clicks}/run -> clicks.tsv: found a file, expected a folder to wri
    --preset=lstm32 -> --preset=lstm32: is lstm_32 meant? value should be
    --preset=keyvec --gamma=3 -> --gamma is not for --preset=keyvec: leave
    --init={scorer_run} --gamma=3 -> --gamma is not for the run --init=
    --init={trained_run} --preset=dssm -> ='LSTMEncoder', expected 'DSSMEncoder'
    --init={trained_run} --teacher=TEACH -> teacher is used by word_sum and bes
    --epochs=0 -> epochs is 0 with the encoder LSTMEncoder: expected 0 for
    --select=mrr@7 -> --select=mrr@7
    --seed=4294967296 -> --seed=4294967296
    --gamma=nan -> --gamma=nan: expected a finite
    --gamma=1e39 -> expected a finite number, 1e+30
    --save_minutes=inf -> --save_minutes=inf: exp
    --workers=2 --start_minutes=nan -> --start_minutes=nan: expect
    --max_bad_lines=-1 -> --max_bad_lines=-1
    --data={faulty} --data={clicks} -> --data is given twice
    --noresume=true -> --noresume=true does not take an argument
    --set momentum_midle=0.9 -> with the name momentum_middle, or a name that
    --set momentum_middle=1 -> momentum_middle=1: expected a number from 0, belo
    --set threshold=nan -> --set threshold=nan: expected a finite
    --set epochs=3 -> --set epochs=3: epochs has a flag: give --epochs=3
    --set windows=3 -> --set windows=3: expected NAME=VALUE with a name
    {faulty} -> faulty.tsv'; quote globs
""",
    "train --data={clicks} --output={new} --preset=mv_lstm_tensor": """
    --preset=mv_lstm -> --preset=mv_lstm
    --gamma=3 -> --gamma is not for --preset=mv_lstm_tensor
    --learning_rate=nan -> --learning_rate=nan
    --set margin=inf -> --set margin=inf
    --set n=3 -> --set n is not for --preset=mv_lstm_tensor
""",
    "train --output={new} --workers=2": """
    --data=api --preset=best_words --teacher=TEACH -> --teacher is not supported
    --seed=1 -> data is missing: expected `api`, a BEIR folder or click
    --data=api --preset=mv_lstm_cosine -> several workers train two towers only
""",
    "train --output={new} --workers=1 --data=api": """
    --ray_address=auto -> --ray_address is set, but one process trains
    --worker_cpus=1 -> --worker_cpus is set, but one process trains
    --start_minutes=5 -> --start_minutes is set, but one process trains
""",
    "evaluate --run={trained_run} --data={collection_folder}": """
    --split=tset -> tset.tsv: no such split, expected one of dev, test
    --mode=rank -> --mode=rank: is rerank meant? value should be one of
    --bm25_words=stems -> is for --hybrid: expected one of model, space, alpha
    --min_relevant=3 -> split 'test' has no query to rerank
    --run_file=/nowhere/out.trec -> out.trec: there is no folder
    --json={tmp_path}/no/out.json -> out.json: there is no folder
    --html={tmp_path}/no/out.html -> out.html: there is no folder
    --html=out.html --queries=0 -> --html shows the lists that --queries=0 lea
    --run={broken} --run_file={tmp_path}/no/out.trec -> out.trec: there is no fo
    --run={broken} --depth=1 -> metrics.json: cannot be read (Expecting
    --run={tmp_path}/none -> none' is not the folder of a run, nor an enc
    --run={tmp_path} -> no model here
    --data={tmp_path}/none -> none: found
    --data={unclicked} -> SHOP: found products without a log, expected queries o
    --run=no_such_module:encode -> 'no_such_module:encode' is not the folder of
    --mix=bm25 --mix_weights=1,-1 -> the weight of 'bm25' in the mixture is -1.0
    --mix=bm25 --mix_weights=0,0 -> all weights of the mixture are 0
    --mix=bm25 --mix_weights=1 -> found 1 weights of a mixture, expected 2, for
    --mix=bm25 --mix_weights=1,a -> --mix_weights=1,a: expected numbers separate
    --mix_weights=1 -> --mix_weights is for --mix
    --mix=bm25,bm25 -> --mix: found 'bm25', which
    --mix=model -> --mix: found 'model', which
    --mix=no:thing -> --mix: 'no:thing' is not bm25, nor the folder of a run, no
    --mix=bm25 --split=dev -> --split=dev: the weights of --mix would be fitted
    --mix=bm25 --dev=none -> none
    --mix={scorer_run} --mode=retrieve -> only scores lists: use --mode=rerank
    --dev={collection_folder} -> --dev is used with --mix or --hybrid only
    --select=mrr@10 -> --select is used with --mix or --hybrid only
    --mix=bm25 --mix_weights=1,1 --dev=api -> --dev is for fitting weights
    --mix=bm25 --mix_weights=1,1 --select=map
        -> --select is for fitting weights, but --mix_weights gives them
    --mix={keyvec_run} --mix_weights=1,1 -> found a KeyVec, which reads document
""",
    "teach --documents={titles} --encoder=x --output={new}": """
    --min_relevant=2 -> --min_relevant is for --data: leave it out
    --max_bad_lines=2 -> --max_bad_lines is for --data: leave it out
""",
    "search": """
    glue -> --models is missing: the folder that lstm-dssm-exp
    --models=m --documents={titles} glue -> --documents is for --run, not for
    --models=m --run={trained_run} --documents={titles} glue
        -> --models and --run are given
    --run={trained_run} glue -> --documents is missing: With --run
    --run={scorer_run} --documents={titles} glue -> found a pair scorer, expec
    --models={tmp_path} glue -> no SavedModel
    --models={trained_run} glue -> found the folder of a run, expected one that
    --server=http://localhost:1 glue -> expected HOST:PORT of gRPC, which
    --models={models} -> no query
    --models={models} --k=3000000000 glue -> k is 3000000000
    --models={models}/retriever --model=../retriever glue
        -> found the name '../retriever'
    --models={no_model} x -> not a file that this version can read
    --models={models} --explain glue -> it has no signature explained
    --models={models} --explain --k=101 glue
        -> --k=101 with --explain: expected at most 100
    --models=m --server=localhost:1 glue -> --models and --server are given
    --models=m --show=status -> --show is for --server
    --run=m --token_file=t glue -> --token_file is for --server
    --server=localhost:1 --documents=d glue -> is for --run, not for --server
""",
    "export --run={trained_run} --output={new}": """
    --run={tmp_path}/none -> no model here
    --run= -> --run is missing
    --bm25_words=words -> --bm25_words is used with --hybrid only
    --documents={tmp_path}/no.txt -> no.txt
    --documents={half} -> part-00000-00001 is missing; expected all
    --vectors=int4 -> should be one of
    --vectors=int8 -> --vectors is used with --documents only
    --max_k=9 -> --max_k is used with --documents only
    --teacher=TEACH -> --teacher is used with --documents only
    --yes -> --yes is used with --documents only
    --max_k=0 -> --max_k=0: expected an integer
    --output={clicks}/m -> clicks.tsv: found a file, expected a folder to write
    --run={scorer_run} --documents={titles} -> documents are for the retriever o
""",
    "export --hybrid --documents={titles} --output={new}": """
    --output= -> --output is missing
    --documents= -> a hybrid retriever counts the words of titles
    --run={tmp_path}/none -> no model here
    --portable={new}.x --run={trained_run} -> not used with --portable
    --bm25_words=space -> should be one of
""",
    "evaluate --run={trained_run} --data={collection_folder} --hybrid": """
    --mode=rerank -> leave out --mix and --mode=rerank
    --mix=bm25 -> leave out --mix and --mode=rerank
    --bm25_words=space -> expected one of stems, words
""",
    "export --portable={new}": """
    --weights=float32 -> --run is missing
    --run={trained_run} --output=x -> not used with --portable
    --hybrid -> a hybrid retriever ranks titles: give them with
    --run={trained_run} --vectors=int8 -> --vectors is used with --documents onl
""",
    "encode --input={titles} --output={new}"
    " --saved_model={models}/query_encoder": """
    --saved_model={models}/retriever -> expected ['text']
    --output={titles} -> would overwrite the file of --input: give another
    --ids={titles} -> would overwrite the file of --input: give another
    --ids={new} -> would overwrite the file of --ids: give another
    --json={titles} -> would overwrite the file of --input: give another
    --input={tmp_path}/no.txt -> no.txt
    --output={tmp_path}/no/v.npy -> v.npy: there is no folder
    --input={latin_1} -> latin_1.txt:2: found invalid UTF-8
    --shard=2/2 -> shard is '2/2': expected a number, a slash
    --ray_address=auto -> --ray_address is used with --workers only
    --shard=0/1 --ids={tmp_path}/ids -> --ids is a flag for
    --shard=0/1 --run={trained_run} -> --run is a flag for
    --ids={tmp_path}/ids --run=none -> none: no run here (no config.json)
    --shard=0/1 --ray_address=auto -> --ray_address is used with --workers only
    --shard=0/1 --workers=2 -> are both set: expected one of them
    --shard=0/1 --output={tmp_path}/new.npy -> new.npy: expected a folder for pa
    --shard=0/1 --input=no-* -> no such file, expected titles
""",
    "encode --saved_model={models}/document_encoder --input={titles}": """
    --output={half} --rows_per_file=9 -> another --rows_per_file, 2, expected 9
""",
    "encode --write=keys --run=none --input={page}": """
    --k=3 -> none: no model here (no model.keras)
    --run={trained_run} -> found a pair of encoders, expected the
    --input= -> --input is missing: File of texts
    --k=0 -> --k=0: expected a po
    --run= -> --run is missing: With --write=keys: folder of a run of a KeyVec
    --output=x -> --output is not for --write=keys
    --shard=0/2 -> --shard is not for --write=keys
    --write=vectors --k=3 -> --k is not for --write=vectors
    --write=words -> --write=words: value should be one of
""",
    "mcp_server": """
    --models= -> give either --models (a file or folder) or --server
    --models=x --server=y -> give either --models (a file or folder) or
    --models={no_model} --token_file=t -> --token_file is for --server
    --models=absent -> absent: No such file
""",
    "serve --models=.": """
    --models=absent -> error: absent: no such folder;
    --models=. -> error: .: no model in this folder;
    --models= -> --models
    --port=65536 -> 65535
    --host= -> --host is missing
    --set max_rows=0 -> --set max_rows=0
    --poll_seconds=nan -> poll_seconds is nan; expected
    --http_port=65536 -> 65535
    --grace_seconds=inf -> grace_seconds is inf; expec
    --set max_k=0 -> --set max_k=0
    --click_log=x -> --click_log is for the search page: give --http_port, too
    --protocols=openai,smtp -> expected none, one or more of openai, embed, rer
    --host=0.0.0.0 -> host 0.0.0.0: other machines can
    --tls_cert=x -> both --tls_cert and --tls_key
    --client_ca=x -> both --tls_cert and --tls_key
    --tls_cert=x --tls_key=y -> x: No such file
    --token_file=x -> x: No such file
    --host=:: --insecure -> .: no model in this fol
    --models={tiny_models} --port={used_port} -> error: cannot listen on 127.0.0
    --models={tiny_models} --port=0 --http_port={used_port}
        -> Address already in use; give another
""",
    "search --server=127.0.0.1:{used_port}": """
    --k=10 -> no query; give one or more
    --k=0 bolt -> --k=0
    --server= bolt -> --models is missing: the folder
    --model=absent bolt -> model absent: NOT_FOUND: Servable not
    --k=3000000000 bolt -> k is 3000000000; expected a whole number from 1
    --model_version=99999999999999999999 bolt -> number from 0, below 2**63
    --version=2 bolt -> --version is no flag: is --model_version meant?
    --timeout=nan bolt -> timeout is nan; expected seconds
    --model=scorer bolt -> no document; give the query, here 'bolt'
    --model=absent --show=status -> Could not find any versions of
    --model_version=1 --show=vectors bolt -> Specific(query_encoder, 1)
    --model_version=canary bolt -> servable version label: canary
    --model=numbers bolt -> model numbers: INVALID_ARGUMENT
    --server=localhost:1 bolt -> no answer from localhost:1: start
    --tls_cert=x bolt -> give both
    --show=status bolt -> found the query 'bolt' and --show=status: lea
    --show=status --tags=a -> --tags and --show=status are given: leave
    --show=status --model_version=1 -> and --show=status are given: lea
    --show=vectors --tags=a bolt -> --tags and --show=vectors are given
    --show=vectors --explain bolt -> --explain and --show=vectors are gi
    --show=vectors --k=3 bolt -> --k and --show=vectors are given: leave
    --model=scorer --k=3 bolt steel -> --k is for a retriever, which scorer i
    --model=scorer --tags=a bolt steel -> --tags is for a retriever, which sc
    "--tags=a, ,b" bolt -> expected a tag that is not blank
""",
    "analyze --run={trained_run} --output={new}": """
    --output={tmp_path}/no/report.html -> there is no folder
    --run={tmp_path} -> no model here
    --data={tmp_path}/none.tsv -> none.tsv: no such file
    --queries={tmp_path}/none.txt -> none.txt: cannot be read
    --queries={blank} -> blank.txt: found an empty file
    --data={unjudged} --claims -> no query with a relevant
    --set share=2 -> --set share=2
    --set map=circle -> --set map=circle
    --set csv=new -> csv is used by KeyVecs only
    --salience=bm25 -> salience is used by KeyVecs only
""",
    "analyze --run={scorer_run} --output={new}": """
    --claims -> claims is used by two towers only
    --projector -> projector is used by two towers and KeyVecs only
    --data={one_click} -> no query with a right and a wrong answer
    --run={arc} -> ARCI has no interaction matrix of words
    --against={trained_run} -> expected the run of a pair scorer: train
""",
    "analyze --run={keyvec_run} --output={new}": """
    --claims -> claims is used by two towers only
    --against={scorer_run} -> against is used by pair scorers only
    --query=glue -> query is used by two towers and pair scorers
    --salience=none -> salience is 'none': found no such folder
    --data={tmp_path}/none -> none: found nothing there
    --data={two_documents} -> found 2 documents, expected 3 or more for a map
    --run={no_targets} -> expected targets of documents
""",
    "table --data={collection_folder} --output={new}": """
    --systems=random -> --paper is missing
""",
    "table --data={collection_folder} --output={new} --paper=mv_lstm": """
    --set gammas=5 -> --set gammas is not for --paper=mv
    --pairs=5 -> --pairs is not for --paper=mv
    --clicks=5 -> --clicks is not for --paper
    --paper=table_iv --set select=map -> --set select is not for --pape
    --systems=dssm -> found 'dssm', expected all
    --set learning_rates=x -> --set learning_rates=x: expected numbers fr
    --data=a/x,b/x -> found two data sets of one n
""",
    "table --data={collection_folder} --output={new} --paper=table_iv": """
    --systems=lstm -> found 'lstm', expected all, or some of random
    --set misspelled=20 -> --set misspelled=20: expected numbers from 0 to 1
    --set gammas= -> --set gammas: found nothing, expected a number
    --pairs=120 -> --pairs=120: found a log of 120 clicks, expected
    --pairs=many -> --pairs=many: expected numbers
    --clicks=60 --pairs=100 -> --pairs=100: found a log of 6
""",
}  # fmt: skip
ROWS = [
    (command, words, message)
    for command, rows in REFUSED.items()
    for words, message in re.findall(r"^ +(\S.*?)\s+-> (.*)$", rows, re.M)
]


OF_TABLES = {"new", "new/.lock", "new/clicks.some.tsv"}
"""What is written before the log is counted."""


@pytest.fixture
def new(tmp_path) -> Path:
    return tmp_path / "new"


@pytest.fixture
def broken(tmp_path) -> Path:
    """A run without a model, and with damaged figures."""
    (tmp_path / "metrics.json").write_text("{")
    return tmp_path


def written(name: str, text: str):
    """Returns a fixture: a file with a text."""

    def write(tmp_path) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        return path

    return pytest.fixture(write)


page = written("page.txt", "The hex bolt of steel. Wood glue!\n")
blank = written("blank.txt", "\n \n")
faulty = written("faulty.tsv", "hex bolt\tsteel hex bolt\nno tab here\n")
one_click = written("one.tsv", "glue\twood glue\n")
latin_1 = written("latin_1.txt", "glue\ncaf\xe9\n")
no_model = written("file.safetensors", "no model")


@pytest.fixture
def outside_encoder(tmp_path) -> str:
    (tmp_path / "lengths.py").write_text(
        "def encode(texts):\n    return [[len(text), 1] for text in texts]\n"
    )
    return "lengths:encode"


@pytest.fixture
def unjudged(tmp_path) -> Path:
    """A collection without a relevant title, and without clicks."""
    folder, nothing = tmp_path / "unjudged", {"test": {"q": {"a": 0}}}
    write_collection(folder, {"a": "glue"}, {"q": "wood"}, nothing, [])
    (folder / "clicks.train.tsv.gz").unlink()
    return folder


@pytest.fixture
def unclicked(tmp_path) -> str:
    """A data folder of a catalogue without a log."""
    (tmp_path / "catalogue.csv").write_text("id,title\na,wood glue\n")
    catalogue = tmp_path / "catalogue.csv"
    return prepare(tmp_path / "SHOP", catalogue=catalogue).collection.folder


@pytest.fixture
def two_documents(tmp_path) -> Path:
    (tmp_path / "documents.jsonl").write_text(
        '{"_id": 1, "text": "hat", "summary": "hat"}\n'
        '{"_id": 2, "text": "saw", "summary": "saw"}\n'
    )
    return tmp_path


@pytest.fixture
def no_targets(keyvec_run, tmp_path) -> Path:
    without = shutil.ignore_patterns(TARGETS_FILE)
    return shutil.copytree(keyvec_run, tmp_path / "run", ignore=without)


@pytest.fixture
def arc(tmp_path) -> Path:
    recipe = dssm.ScorerRecipe("ARCI", words="trigrams", word_dimension=2)
    return saved_run(tmp_path / "arc", dssm.build_model(recipe))


@pytest.fixture(scope="module")
def used_port(tiny_models):
    """The port of a server."""
    with PredictionServer(tiny_models, port=0) as server:
        yield server.port


@pytest.mark.parametrize(("command", "words", "message"), ROWS)
def test_wrong_input_is_one_line(
    command, words, message, request, tmp_path, monkeypatch, refused
):
    """Whatever is wrong is said before the work, or a file, has begun."""
    monkeypatch.chdir(tmp_path)
    parts = Formatter().parse(f"{command} {words}")
    names = {name for _, name, _, _ in parts if name}
    values = {name: request.getfixturevalue(name) for name in names}
    before = {*tmp_path.rglob("*")}
    program, *given = shlex.split(command)
    added = shlex.split(words)
    replaced = {word.partition("=")[0] for word in added}
    flags = [flag for flag in given if flag.partition("=")[0] not in replaced]
    run = importlib.import_module(
        f"keras_lstm_dssm.tools.{program}"
    ).program.run
    argv = [program, *(f.format(**values) for f in (*flags, *added))]
    refused(run(argv), message)
    written = {
        str(p.relative_to(tmp_path)) for p in {*tmp_path.rglob("*")} - before
    }
    assert written <= (OF_TABLES if program.startswith("table") else set())


def test_the_table_is_read_as_it_is_written():
    assert len(ROWS) == sum(rows.count("->") for rows in REFUSED.values())
    assert ROWS[0] == (
        "prepare --clicks={clicks} --output={new}",
        "--clicks=",
        "clicks is missing: expected a log (clicks, or ubi), a catalo",
    )  # fmt: skip
