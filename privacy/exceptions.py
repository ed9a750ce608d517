"""What a host's holder may raise, to say why it did not succeed."""


class HolderFailed(Exception):
    """
    A holder could not erase what it holds; it is asked again later.

    The text is shown to the person and kept in the erasure's record: it must name nobody.
    """
