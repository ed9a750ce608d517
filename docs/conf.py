"""How Sphinx builds this manual. Nothing is loaded from another host, neither building nor reading."""

import os
import sys
from pathlib import Path

import django

HERE = Path(__file__).resolve().parent
# The apps, which the reference is generated from, and the generator itself.
sys.path[:0] = [str(HERE.parent), str(HERE)]

# The standalone service has every app. Nothing here opens a connection to a database.
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
django.setup()

project = "Consentful"
author = "The Consentful authors"
copyright = "The Consentful authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generate"]
myst_enable_extensions = ["colon_fence", "deflist"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

# Links to headings are checked: a page may name `errors.md#stale_revision`.
myst_heading_anchors = 3
nitpicky = True
# The types of other projects are described by other manuals, which no build may ask.
nitpick_ignore_regex = [("py:.*", ".*")]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# As they are written, not as they look when printed.
autodoc_preserve_defaults = True
# Single backticks in a docstring are code.
default_role = "literal"

html_theme = "furo"
html_title = "Consentful"
html_show_sourcelink = False
html_copy_source = False
