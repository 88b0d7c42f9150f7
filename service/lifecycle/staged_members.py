"""What an archive holds, as staged files by path."""

from service.archives.contract import Entry
from service.store.staging import StagedFile, Staging


class StagedMembers:
    """A :class:`~service.archives.contract.Sink`."""

    def __init__(self, staging: Staging) -> None:
        self.found: dict[str, StagedFile] = {}
        self._staging = staging
        self._path = ""

    def begin(self, entry: Entry) -> None:
        self._path = entry.path
        self._staging.begin()

    def write(self, data: bytes | memoryview) -> None:
        self._staging.write(data)

    def end(self) -> None:
        self.found[self._path] = self._staging.end()
