"""A posting as an agent reads it."""

from workstead.importers.amounts import money
from workstead.importers.payworthy.posting import Posting

_DELIVER = """
## How to hand in

Save the finished work as files, named for what they are, in /workspace/output. Only these files are handed in. What the client
has to know beside them (what you could not do, and why) goes into /workspace/output/note.md. Do not claim work that you did not do.
"""


def instruction_of(posting: Posting, description: str) -> str:
    """Return the posting with its terms, and the rule for the output."""
    head = f"# {posting.title.strip()}\n\n" if posting.title else ""
    terms = "\n".join(f"- {name}: {value}" for name, value in _terms(posting) if value)
    return f"{head}{description.strip()}\n\n## Terms\n\n{terms}\n{_DELIVER}"


def _terms(posting: Posting) -> list[tuple[str, str | None]]:
    return [
        ("Pay", _pay(posting)),
        ("Skills", ", ".join(posting.skills)),
        ("Expected duration", posting.duration),
        ("Level of experience", posting.expertise),
    ]


def _pay(posting: Posting) -> str:
    if posting.pay_type == "fixed":
        return "fixed price" if posting.budget is None else f"fixed price, {money(posting.budget)} {posting.currency}"
    ends = [money(end) for end in (posting.hourly_min, posting.hourly_max) if end is not None]
    return "by the hour" + (f", {' to '.join(dict.fromkeys(ends))} {posting.currency}" if ends else "")
