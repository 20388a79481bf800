"""Sphinx's settings of the site. build.py calls Sphinx; nothing here needs a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from reference import as_text
from sphinx.application import Sphinx

project = "BERT and its family"
html_title = project
language = "en"
author = ""
copyright = "text, figures and data CC BY 4.0, code MIT"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80
nb_execution_mode = "off"  # the notebooks are stored executed
nb_ipywidgets_js: dict[str, Any] = {}  # its default is another host's; live views are our own
nb_output_stderr = "show"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
suppress_warnings = ["myst.header", "ref.python"]  # names stand at the front door and at home
myst_heading_slug_func = "site_links.as_jupyter_does"

html_theme = "furo"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00558a", "color-brand-content": "#00558a"},
    "dark_css_variables": {"color-brand-primary": "#8ecbf0", "color-brand-content": "#8ecbf0"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_css_files = ["modules.css", "site.css"]
html_js_files = ["modules.js", "site.js"]
html_permalinks_icon = "#"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it would fetch whole pages, which a browser refuses for files
html_last_updated_fmt = None
html_use_index = False
html_domain_indices = False


# --- formulas as MathML, which browsers draw themselves: no script, no font ---------------------


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula" tabindex="0" role="group">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", as_text)
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )


html_math_renderer = "mathml"
