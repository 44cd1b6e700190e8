"""How the site is built: `make docs` writes it to build/site, without a network."""

from __future__ import annotations

import inspect
import os
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx_gallery.sorting import ExplicitOrder

import neverworse

project = "neverworse"
author = "The neverworse developers"
copyright = "the neverworse developers"  # noqa: A001
version = release = neverworse.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]

# Markdown, as GitHub shows it too
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 6

# The reference
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": "BaseEstimator"}
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
templates_path = ["_templates"]

# Links into the pages of other projects need a network, so they are made only where asked for.
if os.environ.get("DOCS_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# The gallery
ORDER = [  # from the first question to the last
    "plot_does_it_help.py",
    "plot_constraint_set.py",
    "plot_nothing_to_improve.py",
    "plot_tuned_baseline.py",
    "plot_not_at_random.py",
    "plot_class_prior.py",
    "plot_weak_labels.py",
    "plot_model_selection.py",
    "plot_audit.py",
    "plot_few_labels_decide.py",
    "plot_label_next.py",
    "plot_regression.py",
    "plot_million_rows.py",
    "plot_kernels.py",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": ExplicitOrder(ORDER),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("neverworse",),
    "reference_url": {"neverworse": None},
    "abort_on_example_error": True,
    "copyfile_regex": "",
    "show_memory": False,
    "write_computation_times": False,
}

# The pages
html_theme = "pydata_sphinx_theme"
html_title = "neverworse"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["the-geometry.html"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a browser does not fetch pages from a disk
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "changelog": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Pages that are files of the repository elsewhere, where the other pages link to them.
OUTSIDE = {
    "../README.md": "index.md",
    "../examples/README.rst": "gallery/index.rst",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../benchmarks/README.md": "benchmarks.md",
}


def link_inside(app: Any, docname: str, source: list[str]) -> None:
    """Let links to files outside of docs lead to their pages."""
    for file, page in OUTSIDE.items():
        source[0] = re.sub(rf"\]\({re.escape(file)}(?=[)#])", f"]({page}", source[0])


def formula(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    block = node.tagname == "math_block"
    source = re.sub(r"\\[Bb]ig(?![A-Za-z])", "", node.astext())  # brackets stretch by themselves
    markup = latex2mathml.tex2mathml(source, as_block=block)
    box = "div" if block else "span"
    focus = ' tabindex="0"' if block else ""  # a wide one scrolls, from the keyboard too
    translator.body.append(f'<{box} class="formula"{focus}>{markup}</{box}>')
    raise nodes.SkipNode


def on_narrow_screens(app: Any, page: str, template: str, context: Any, doctree: Any) -> None:
    """Let tables that scroll be reached from the keyboard, and names break between their words."""
    if "body" in context:
        body = context["body"].replace("<table ", '<table tabindex="0" ')
        title = re.search(r"(?<=<h1>)\w+", body)
        if title and page.startswith("reference/"):
            words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=_)", "<wbr>", title[0])
            body = body[: title.start()] + words + body[title.end() :]
        context["body"] = body


def skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave out what a class has from elsewhere: scikit-learn's pages say what that is."""
    member = inspect.unwrap(member) if callable(member) else member
    home = getattr(member, "__module__", None)
    return skip or (what == "class" and isinstance(home, str) and home.startswith("sklearn."))


def escape_fitted(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep names such as coef_ in plain text from being read as links."""
    fitted = re.compile(r"(?<![`*\w<.\\])([A-Za-z]\w*[A-Za-z0-9])_(?![\w`*>])")
    session = re.compile(r"\s*(>>>|\.\.\. )")
    lines[:] = [each if session.match(each) else fitted.sub(r"\1\\_", each) for each in lines]


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("source-read", link_inside)
    app.connect("html-page-context", on_narrow_screens)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", escape_fitted, priority=600)  # after numpydoc
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
