"""
What goes wrong about proof::

    ProofError
    ├── SigningKeyMissing    nothing to sign with
    └── ProofRefused         a key, a signature, a checkpoint or an export that cannot be believed
"""


class ProofError(Exception):
    """Base of the errors about keys, checkpoints and exports; the text names the rule."""


class SigningKeyMissing(ProofError):
    """No signing key is configured: set CONSENTFUL_SIGNING_KEY."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


class ProofRefused(ProofError):
    """It cannot be believed; the text says which rule it breaks."""
