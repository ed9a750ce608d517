"""
Global Privacy Control: a browser says `Sec-GPC: 1` with every request of whoever does not want their data
sold or shared. Here it is heard; what it means is for the apps above.
"""

from collections.abc import Callable

from tenants.callers import Caller

#: What is told of a person's own credential that came with the signal.
listeners: list[Callable[[Caller], object]] = []


def announce(caller: Caller) -> None:
    """Tell the listeners, where a person speaks for itself: an agent's signal is not the person's."""
    if caller.subject is None or caller.is_agent or caller.is_guardian:
        return
    for listener in listeners:
        listener(caller)
