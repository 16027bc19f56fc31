"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import infinitask

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the extension below

project = "infinitask"
author = "The infinitask developers"
copyright = "The infinitask developers. BSD-3-Clause"
release = version = infinitask.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "_extensions.docstrings",
    "_extensions.mathml",
]
exclude_patterns = ["_build", "_extensions", "**/GALLERY_HEADER.rst", "gallery/**/*.py.md5"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!infinitask).*"),  # names of other libraries, and words that describe a type
    ("py:.*", r"infinitask\.(.*\.)?_\w+.*"),  # private modules have no page
]
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions

# --------------------------------------------------------------------------------------------------- pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# ----------------------------------------------------------------------------------------------- reference
autosummary_generate = True
autosummary_imported_members = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types are in the docstrings, with shapes
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# ------------------------------------------------------------------------------------------------- gallery
SECTIONS = ("quantiles", "costs", "level_sets", "beyond")


def section_order(folder: str) -> int:
    """The place of a folder of examples."""
    return SECTIONS.index(Path(folder).name) if Path(folder).name in SECTIONS else len(SECTIONS)


FIRST = ("plot_price_intervals.py", "plot_screening_test.py", "plot_machine_anomalies.py", "plot_own_loss.py")
"""The examples to begin with."""


def example_order(filename: str) -> tuple[bool, str]:
    """The place of an example in its folder."""
    return Path(filename).name not in FIRST, filename


def house_look(gallery_conf: object, fname: str) -> None:
    """Every example begins with the same settings of matplotlib, and treats a warning of ours as an error."""
    import matplotlib.pyplot as plt

    from infinitask.plotting import LIGHT

    plt.rcParams.update(LIGHT.settings() | {"figure.dpi": 110, "savefig.bbox": "tight"})
    warnings.filterwarnings("error", module=r"infinitask(\..*)?")


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "subsection_order": section_order,
    "within_subsection_order": example_order,
    "thumbnail_size": (480, 320),
    "reset_modules": ("matplotlib", house_look),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "doc_module": ("infinitask",),
    "backreferences_dir": "api/examples",
    "inspect_global_variables": False,
    "show_memory": False,
    "min_reported_time": 5,
    "parallel": int(os.environ.get("INFINITASK_DOCS_JOBS", "1")),
    "copyfile_regex": "",
    "nested_sections": True,
    "show_signature": False,
    "write_computation_times": False,
}

# -------------------------------------------------------------------------------------------------- looks
html_theme = "pydata_sphinx_theme"
html_title = "infinitask"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "quickstart", "choose", "faq")}  # pages without pages below them
html_theme_options = {
    "logo": {"text": "infinitask", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
