"""Which host has room for a run, and why a run still waits: rules that claims, holds and the API share (NEEDS B27).

Memory is promised by the limits of live runs, disk by their quotas; warm sandboxes give way to runs and count for
nothing here. What a host did not report does not limit it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.domain.limits import GIB


class Wait(StrEnum):
    """Why a queued run has not been placed."""

    SLOT = "waiting_for_slot"
    PROJECT_SLOTS = "project_slots"
    MEMORY = "waiting_for_memory"
    DISK = "waiting_for_disk"
    NO_HOST = "no_host"
    IMAGE = "image_missing"
    CORDONED = "hosts_cordoned"


@dataclass(frozen=True, slots=True)
class Need:
    """What a run asks of a host."""

    environment: str
    memory_bytes: int
    disk_bytes: int
    runtime: str | None = None
    untrusted: bool = False
    kit: str | None = None

    @property
    def images(self) -> tuple[str, ...]:
        return (self.environment,) if self.kit is None else (self.environment, self.kit)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A host as placement sees it. Null: the host did not say, so it does not limit."""

    host_id: str
    slots: int
    runtimes: tuple[str, ...]
    environments: tuple[str, ...]
    untrusted_runtimes: tuple[str, ...] = ()
    state: str = "up"
    cordoned: bool = False
    slots_limit: int | None = None
    running: int = 0
    """Attempts that still have their slot."""
    memory_usable_bytes: int | None = None
    memory_promised_bytes: int = 0
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    disk_watermark_bytes: int = 0
    disk_overcommit: float = 2.0
    """How many times the free disk may be promised as quotas: few runs fill theirs."""
    disk_promised_bytes: int = 0

    @property
    def open_slots(self) -> int:
        limit = self.slots if self.slots_limit is None else min(self.slots, self.slots_limit)
        return max(limit - self.running, 0)

    @property
    def takes_runs(self) -> bool:
        return self.state == "up" and not self.cordoned

    @property
    def memory_left_bytes(self) -> int | None:
        return None if self.memory_usable_bytes is None else self.memory_usable_bytes - self.memory_promised_bytes

    @property
    def disk_is_full(self) -> bool:
        return self.disk_free_bytes is not None and self.disk_free_bytes < self.disk_watermark_bytes

    @property
    def disk_left_bytes(self) -> int | None:
        """Bytes of quotas that can still be promised; null if unlimited."""
        if self.disk_free_bytes is None:
            return None
        return 0 if self.disk_is_full else int(self.disk_free_bytes * self.disk_overcommit) - self.disk_promised_bytes

    def offers(self, need: Need) -> bool:
        """Tell whether the host has the images and a runtime for it, whatever is free."""
        allowed = self.untrusted_runtimes if need.untrusted else self.runtimes
        return not self.lacks(need) and (need.runtime in allowed if need.runtime is not None else bool(allowed))

    def lacks(self, need: Need) -> list[str]:
        """Return those of the images that the host does not have."""
        return [image for image in need.images if image not in self.environments]

    def large_enough(self, need: Need) -> bool:
        """Tell whether the host could hold it with nothing else on it."""
        memory, disk = self.memory_usable_bytes, self.disk_total_bytes
        return (memory is None or need.memory_bytes <= memory) and (
            disk is None or need.disk_bytes <= disk * self.disk_overcommit
        )

    def has_memory(self, need: Need) -> bool:
        return self.memory_left_bytes is None or need.memory_bytes <= self.memory_left_bytes

    def has_disk(self, need: Need) -> bool:
        return self.disk_left_bytes is None or need.disk_bytes <= self.disk_left_bytes

    def has_room(self, need: Need) -> bool:
        """Tell whether memory and disk suffice now; slots are the caller's."""
        return self.has_memory(need) and self.has_disk(need)


def reserving_host(hosts: Iterable[Capacity], need: Need) -> str | None:
    """Return the one host that keeps its room free for a run that has waited long for some.

    The one with the most memory left: it takes nothing else meanwhile, so it stays the one until the run is placed.
    """
    able = [h for h in hosts if h.takes_runs and h.offers(need) and h.large_enough(need)]
    best = max(able, key=lambda h: (h.memory_left_bytes or 0, h.disk_left_bytes or 0, h.host_id), default=None)
    return None if best is None else best.host_id


@dataclass(frozen=True, slots=True)
class Share:
    """A project's part in the work: runs that are live, and the most that may be (null = no limit)."""

    live: int
    max_runs: int | None

    @property
    def is_full(self) -> bool:
        return self.max_runs is not None and self.live >= self.max_runs


def why_waiting(hosts: Sequence[Capacity], need: Need, share: Share) -> tuple[Wait, str]:
    """Return the reason why a queued run is not at work, and the same in words; no host is named."""
    standing = [h for h in hosts if h.state in ("up", "draining")]
    if not standing:
        return Wait.NO_HOST, "no host is up"
    offering = [h for h in standing if h.offers(need)]
    if not offering:
        return nowhere(standing, need)
    if share.is_full:
        return Wait.PROJECT_SLOTS, f"the project has {share.live} runs at work of {share.max_runs} at most"
    taking = [h for h in offering if h.takes_runs]
    if not taking:
        return Wait.CORDONED, "every host that could take it is cordoned"
    return _room_of(taking, need)


def nowhere(standing: Sequence[Capacity], need: Need) -> tuple[Wait, str]:
    """Return why none of the hosts offers what a run asks, and the same in words."""
    least = min((h.lacks(need) for h in standing), key=len, default=list[str]())
    if not least:
        return Wait.NO_HOST, f"no host that is up offers runtime {need.runtime or 'for untrusted projects'!r}"
    return Wait.IMAGE, f"no host that is up has {' and '.join(map(shown_image, least))}"


def shown_image(image: str) -> str:
    """Return an image with what brings it to a host."""
    how = "hosts load it" if image.startswith("img_") else "`make images` builds those that are shipped"
    return f"image {image!r} ({how})"


def _room_of(taking: Sequence[Capacity], need: Need) -> tuple[Wait, str]:
    free = [h for h in taking if h.open_slots > 0]
    if not free:
        return Wait.SLOT, f"all {sum(h.running for h in taking)} slots are taken"
    dry = [h for h in free if not h.disk_is_full]
    if not dry:
        least = max(free, key=lambda h: h.disk_free_bytes or 0)
        kept = gib(least.disk_watermark_bytes)
        return Wait.DISK, f"the disk has {gib(least.disk_free_bytes or 0)} free, and {kept} are kept free"
    if not any(h.has_memory(need) for h in dry):
        most = max(h.memory_left_bytes or 0 for h in dry)
        return Wait.MEMORY, f"needs {gib(need.memory_bytes)} of memory, {gib(max(most, 0))} free"
    if not any(h.has_room(need) for h in dry):
        most = max(h.disk_left_bytes or 0 for h in dry)
        return Wait.DISK, f"needs {gib(need.disk_bytes)} of disk, {gib(max(most, 0))} can be promised"
    return Wait.SLOT, "a slot is free; earlier runs go first"


def too_large(hosts: Sequence[Capacity], need: Need) -> str | None:
    """Return, in words, why no host could ever hold the run; null if one of them could, or if none offers what it asks."""
    offering = [h for h in hosts if h.state == "up" and h.offers(need)]
    if not offering or any(h.large_enough(need) for h in offering):
        return None
    memory = max(h.memory_usable_bytes or 0 for h in offering)
    if need.memory_bytes > memory:
        return f"needs {gib(need.memory_bytes)} of memory, the largest host has {gib(memory)}"
    disk = max(int((h.disk_total_bytes or 0) * h.disk_overcommit) for h in offering)
    return f"needs {gib(need.disk_bytes)} of disk, the largest host can promise {gib(disk)}"


def gib(size: int) -> str:
    """Return a size in GiB with at most one decimal: ``8 GiB``."""
    return f"{size / GIB:.1f}".removesuffix(".0") + " GiB"


def obstacles(host: Capacity, needed: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return what keeps a host from taking a run just now, as (reason, in words); empty if it takes any that fits.

    ``needed``: images that waiting runs need, and how many runs do.
    """
    found = [
        (Wait.IMAGE.value, f"{runs} waiting run{'s' if runs > 1 else ''} need {shown_image(image)}, which it lacks")
        for image, runs in needed.items()
        if image not in host.environments
    ]
    if host.state == "lost":
        found.append(("lost", "its worker has not been heard of; its runs went to other hosts"))
    if host.state == "draining":
        found.append(("draining", "its worker ends when its last run is released"))
    elif host.cordoned:
        found.append(("cordoned", "an operator lets it take no new run"))
    if host.open_slots == 0:
        limit = host.slots if host.slots_limit is None else min(host.slots, host.slots_limit)
        found.append((Wait.SLOT.value, f"{host.running} of {limit} slots are taken"))
    if host.disk_is_full:
        free, kept = gib(host.disk_free_bytes or 0), gib(host.disk_watermark_bytes)
        found.append((Wait.DISK.value, f"the disk has {free} free, and {kept} are kept free"))
    elif host.disk_left_bytes is not None and host.disk_left_bytes <= 0:
        found.append((Wait.DISK.value, f"{gib(host.disk_promised_bytes)} of disk are promised to live runs"))
    if host.memory_left_bytes is not None and host.memory_left_bytes <= 0:
        found.append((Wait.MEMORY.value, f"{gib(host.memory_promised_bytes)} of memory are promised to live runs"))
    return found
