"""Sphinx's settings: the site is made from docs/*.md and the docstrings.

`make docs` builds it into build/docs, without a warning, and it is read from
that folder; no page loads anything from the network.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from lstm_dssm_programs import load_package  # noqa: E402 (through sys.path)

load_package()

# The notebook's kernel warns that others on this machine could listen.
kernel = HERE.parent / "build/ipython/profile_default/ipython_kernel_config.py"
kernel.parent.mkdir(parents=True, exist_ok=True)
kernel.write_text("c.IPKernelApp.log_level = 40\n", encoding="utf-8")
os.environ["IPYTHONDIR"] = str(kernel.parents[1])

import docstring_style  # noqa: E402
import reference_pages  # noqa: E402

from keras_lstm_dssm.version import __version__  # noqa: E402

project = "keras_lstm_dssm"
release = version = __version__
copyright = "the authors, Apache-2.0"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**/.ipynb_checkpoints"]
suppress_warnings = [
    "config.cache",  # of handlers below: they do not change between builds
    "misc.highlighting_failure",  # comments in protocol buffers' text
    "mystnb.unknown_mime_type",
]

html_theme = "furo"
html_title = f"keras_lstm_dssm {release}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]

highlight_language = "none"  # most blocks without a language are commands
smartquotes = False  # `--flag` stays two hyphens
myst_enable_extensions = ["deflist", "dollarmath", "html_image"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_output_stderr = "remove"  # notes of libraries on this machine

autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
maximum_signature_line_length = 72
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Call arguments", "params_style")]
python_use_unqualified_type_names = True
add_module_names = False


def setup(app):
    """Connects what makes and prepares pages."""
    app.connect("builder-inited", reference_pages.write)
    app.connect("autodoc-skip-member", reference_pages.skip_member)
    app.connect(
        "autodoc-process-docstring", docstring_style.prepare, priority=400
    )
    app.connect("source-read", reference_pages.give_title)
