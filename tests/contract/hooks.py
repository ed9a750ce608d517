"""Checks of our own that run after every generated request; loaded by the tool itself."""

import os

import jsonschema_rs
import schemathesis
from hypothesis.internal.conjecture.utils import many
from schemathesis.specs.openapi import _hypothesis as generation

#: What stands in the other tenant, in values, names and texts alike.
MARKER = os.environ["CONTRACT_MARKER"].encode()


def more(self):
    """Whether another element follows: hypothesis-jsonschema 0.23 asks as Hypothesis once let it."""
    if self._depth is None:
        self.__enter__()
        self._elements = iter(self)
    return next(self._elements, self) is None


if not hasattr(many, "more"):
    many.more = more
if not hasattr(jsonschema_rs.CanonicalSchema, "is_satisfiable"):
    # The tool's own generator asks jsonschema-rs what 0.61 no longer answers: use the other one.
    generation._canonical_strategy_or_none = lambda *arguments: None


@schemathesis.check
def no_foreign_data(ctx, response, case):
    """Whatever is asked, nothing of another tenant is in the answer."""
    shown = response.content + str(response.headers).encode()
    if MARKER in shown:
        raise AssertionError(f"The answer shows data of another tenant: {shown!r}")
