"""Mails: headers, bodies, what is attached. Pictures that are attached are shown; nothing else that is attached is opened."""

from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from service.evidence.extraction.inside.contract import Failed, Output
from service.evidence.extraction.inside.readers.pages import read_html

MAX_BYTES = 64 << 20
MAX_HEADERS, MAX_PARTS = 200, 500
_PICTURES = 12


def read_eml(path: Path, out: Output) -> None:
    """Raises Failed ``too_large``, ``cannot_open``."""
    if path.stat().st_size > MAX_BYTES:
        raise Failed("too_large", f"more than {MAX_BYTES >> 20} MiB")
    mail = message_from_bytes(path.read_bytes(), policy=policy.default.clone(raise_on_defect=False))
    if not mail.keys():
        raise Failed("cannot_open", "no headers")
    headers = [f"{name}: {str(value)[:5000]}" for name, value in mail.items()]
    out.part("metadata", "headers", "\n".join(headers[:MAX_HEADERS]))
    out.omit(rows=max(0, len(headers) - MAX_HEADERS))
    attached: list[str] = []
    parts = [part for part in mail.walk() if not part.is_multipart()]
    for part in parts[:MAX_PARTS]:
        _part(part, attached, out)
    out.omit(parts=max(0, len(parts) - MAX_PARTS))
    out.fact("attachments", len(attached))
    out.part("listing", "attachments: bytes, type and name", "\n".join(attached))


def _part(part: EmailMessage, attached: list[str], out: Output) -> None:
    kind, name = part.get_content_type(), part.get_filename()
    if name is None and kind.startswith("text/"):
        text = _text(part)
        if kind == "text/html":
            page = out.scratch / "body.html"
            page.write_text(text, "utf-8", "replace")
            read_html(page, out)
        else:
            out.part("message", kind, text)
        return
    content = part.get_payload(decode=True)
    data = content if isinstance(content, bytes) else b""
    attached.append(f"{len(data):>12}  {kind}  {(name or '')[:500]}")
    if kind.startswith("image/") and data and len(out.pictures) < _PICTURES:
        out.picture((name or kind)[:200], "embedded", data)


def _text(part: EmailMessage) -> str:
    content = part.get_payload(decode=True)
    data = content if isinstance(content, bytes) else b""
    try:
        return data.decode(part.get_content_charset("utf-8"), "replace")
    except LookupError:
        return data.decode("utf-8", "replace")
