"""What can go wrong, in the words of the wire."""


class Failed(Exception):
    """One action could not be done; ``word`` is stable, ``detail`` says more. The rest of its batch is not done."""

    def __init__(self, word: str, detail: str) -> None:
        super().__init__(detail)
        self.word, self.detail = word, detail


class Aborted(Failed):
    """The host told us to stop."""

    def __init__(self) -> None:
        super().__init__("aborted", "the host stopped it")


class Refused(Exception):
    """The request as a whole makes no sense."""


class ServerGone(Exception):
    """The X server closed its connection, or did not answer within its time."""
