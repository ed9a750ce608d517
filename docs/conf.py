"""How Sphinx builds this manual. Nothing is loaded from another host, neither building nor reading."""

project = "Consentful"
author = "The Consentful authors"
copyright = "The Consentful authors"

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

# Links to headings are checked: a page may name `errors.md#stale_revision`.
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = "Consentful"
html_show_sourcelink = False
html_copy_source = False
