"""What is wrong with what was seen, in words; nothing: the case passed. Pure."""

from service.domain.limits import MAX_EVENTS, OUTPUT_TEXT_BYTES
from service.domain.run_states import EndedBecause
from service.scaffolds.conformance.seen import Seen
from service.scaffolds.conformance.task import REPORT_FILE, REPORT_SHA256, SUMMARY_FILE, SUMMARY_SHA256

LADDER_S = 30.0
"""Most seconds of a stop ladder and of the kill after it."""
STOP_S = 90.0
"""Most seconds from a stop to the end, with collection."""


def success(seen: Seen) -> list[str]:
    """The program did the work and said so."""
    return [*_ended(seen, EndedBecause.COMPLETED), *_delivered(seen), *_counted(seen)]


def worked(seen: Seen) -> list[str]:
    """The same of a program that asks no model."""
    return [*_ended(seen, EndedBecause.COMPLETED), *_delivered(seen)]


def refused(seen: Seen) -> list[str]:
    """The program gave up when the provider would not have it, and that is not held against the agent."""
    return [*_ended(seen, EndedBecause.PROVIDER_UNAVAILABLE), *_asked(seen)]


def waited(seen: Seen) -> list[str]:
    """The provider's limit was waited out."""
    limited = [] if 429 in seen.statuses else ["the provider never answered 429"]
    return [*success(seen), *limited]


def timeout(seen: Seen) -> list[str]:
    """The wall clock ended it."""
    return [*_ended(seen, EndedBecause.WALL_CLOCK), *_asked(seen)]


def stopped(seen: Seen) -> list[str]:
    """A stop ended it soon."""
    late = seen.stop_s is None or seen.stop_s > STOP_S
    return [*_ended(seen, EndedBecause.STOPPED), *_asked(seen), *([f"not done {STOP_S:.0f} s after the stop"] * late)]


def flooded(seen: Seen) -> list[str]:
    """Much output neither stopped the work nor filled the log."""
    wrong = [*_ended(seen, EndedBecause.COMPLETED), *_delivered(seen)]
    if seen.events > MAX_EVENTS or seen.output_bytes > OUTPUT_TEXT_BYTES:
        wrong.append(f"{seen.events} events and {seen.output_bytes} bytes of output were kept")
    return wrong


def delivered(seen: Seen) -> list[str]:
    """A remote driver did the work; how it asks a model is its own affair."""
    return [*_ended(seen, EndedBecause.COMPLETED), *_delivered(seen), *_driven(seen)]


def on_screen(seen: Seen) -> list[str]:
    """The same as success, by what was done on the screen and seen of it."""
    return [*success(seen), *_acted(seen)]


def remote_on_screen(seen: Seen) -> list[str]:
    return [*delivered(seen), *_acted(seen)]


def remote_timeout(seen: Seen) -> list[str]:
    return [*_ended(seen, EndedBecause.WALL_CLOCK), *_driven(seen)]


def remote_stopped(seen: Seen) -> list[str]:
    late = seen.stop_s is None or seen.stop_s > STOP_S
    return [
        *_ended(seen, EndedBecause.STOPPED), *_driven(seen), *([f"not done {STOP_S:.0f} s after the stop"] * late)
    ]  # fmt: skip


def lease_lost(seen: Seen) -> list[str]:
    """A driver that fell silent lost its claim and could take the run up again."""
    lost = [] if "lost" in seen.driver_events else ["the claim was never lost: the driver kept its heartbeat"]
    return [*lost, *_ended(seen, EndedBecause.COMPLETED), *_delivered(seen)]


def _ended(seen: Seen, wanted: EndedBecause) -> list[str]:
    return [] if seen.ended_because is wanted else [f"ended as {seen.ended_because}, not as {wanted.value}"]


def _delivered(seen: Seen) -> list[str]:
    wanted = {REPORT_FILE: REPORT_SHA256, SUMMARY_FILE: SUMMARY_SHA256}
    absent = [f"{path} was not delivered" for path in wanted if path not in seen.files]
    wrong = [f"{path} has other bytes" for path, sha in wanted.items() if seen.files.get(path, sha) != sha]
    return absent + wrong


def _asked(seen: Seen) -> list[str]:
    return [] if seen.asked else ["the provider was never asked"]


def _counted(seen: Seen) -> list[str]:
    if seen.sent == seen.counted and not seen.unknown:
        return _asked(seen)
    return [f"the provider sent {seen.sent}; the ledger counted {seen.counted}, {seen.unknown} unknown"]


def _driven(seen: Seen) -> list[str]:
    return [] if "claimed" in seen.driver_events else ["nobody claimed the run"]


def _acted(seen: Seen) -> list[str]:
    return [] if seen.batches else ["nothing was done on the screen of which there is a picture"]
