"""Counts what an archive costs while it is read, and stops it."""

from service.archives.contract import ArchiveLimits, over_limit


class Meter:
    def __init__(self, limits: ArchiveLimits) -> None:
        self.limits = limits
        self._packed = 0
        self._inflated = 0
        self._entries = 0

    def packed(self, count: int) -> None:
        """Note bytes of the archive itself. Raises Invalid("archive_limit")."""
        self._packed += count
        if self._packed > self.limits.total_bytes:
            raise over_limit("archive_bytes", self.limits.total_bytes)

    def inflated(self, count: int) -> None:
        """Note bytes that came out of a compressed stream. Raises Invalid("archive_limit")."""
        self._inflated += count
        limits = self.limits
        if self._inflated > limits.total_bytes:
            raise over_limit("total_bytes", limits.total_bytes)
        if self._inflated > limits.ratio_free_bytes + limits.ratio * self._packed:
            raise over_limit("ratio", limits.ratio)

    def entry(self) -> None:
        self._entries += 1
        if self._entries > self.limits.entries:
            raise over_limit("entries", self.limits.entries)

    def member(self, size: int, name: bytes) -> None:
        """Check the size that a member says it has, before anything of it is read."""
        if size > self.limits.member_bytes:
            raise over_limit("member_bytes", self.limits.member_bytes, name)

    def header(self, size: int, name: bytes | None = None) -> None:
        if size > self.limits.header_bytes:
            raise over_limit("header_bytes", self.limits.header_bytes, name)
