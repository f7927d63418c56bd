"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import reactive_runtime  # noqa: E402  # the package of this clone, whatever is installed

logging.getLogger("reactive_runtime").propagate = False  # what its examples log is no news of the build

project = "reactive_runtime"
author = "the authors of reactive_runtime"
release = version = reactive_runtime.__version__
html_title = f"{project} {release}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docs._site.extension",
]
exclude_patterns = ["_site", "_static"]
suppress_warnings = ["ref.python"]  # the name of a type in a signature may stand for one of several classes

# Docstrings name things in single backquotes: a link where there is something of that name, else code.
default_role = "py:obj"
napoleon_custom_sections = ["Demand", "Cancellation", "Thread", "Origin"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4

html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"  # the default of furo underlines names as if they were links
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("game.js", {"defer": "defer"}), ("slides.js", {"defer": "defer"})]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"source_edit_link": "", "source_view_link": ""}
