"""Media types by signature. Nothing is parsed: only bytes at fixed places are compared.

The type of a text file comes from its name, since text has no signature; a claim, like every name.
"""

HEAD_BYTES = 4096
TAIL_BYTES = 16384
UNKNOWN = "application/octet-stream"

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"%PDF-", "application/pdf"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyp", "video/mp4"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"OggS", "application/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"MThd", "audio/midi"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"glTF", "model/gltf-binary"),
    (0, b"{\\rtf", "application/rtf"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
)
_RIFF_TYPES = frozenset({"image/webp", "audio/wav", "video/x-msvideo"})
_OFFICE = "application/vnd.openxmlformats-officedocument."
_ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"word/document", _OFFICE + "wordprocessingml.document"),
    (b"xl/workbook", _OFFICE + "spreadsheetml.sheet"),
    (b"ppt/presentation", _OFFICE + "presentationml.presentation"),
)
_TEXT_BY_SUFFIX = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "md": "text/markdown",
    "html": "text/html",
    "htm": "text/html",
    "svg": "image/svg+xml",
    "xml": "application/xml",
    "py": "text/x-python",
    "css": "text/css",
    "js": "text/javascript",
}


def media_type(name: str, head: bytes, tail: bytes) -> str | None:
    """Return the type of a file from its first HEAD_BYTES and last TAIL_BYTES, or null where unknown."""
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _zip_type(head, tail)
    for offset, magic, mime in _MAGIC:
        if head.startswith(magic, offset) and (mime not in _RIFF_TYPES or head.startswith(b"RIFF")):
            return mime
    if _is_text(head):
        return _TEXT_BY_SUFFIX.get(name.rpartition(".")[2].lower(), "text/plain")
    return None


def _zip_type(head: bytes, tail: bytes) -> str:
    if head[30:38] == b"mimetype":
        declared = head[38:120]
        for mime in ("text", "spreadsheet", "presentation"):
            full = f"application/vnd.oasis.opendocument.{mime}"
            if declared.startswith(full.encode()):
                return full
        if declared.startswith(b"application/epub+zip"):
            return "application/epub+zip"
    for member, mime in _ZIP_MEMBERS:
        if member in head or member in tail:
            return mime
    return "application/zip"


def _is_text(head: bytes) -> bool:
    if not head or b"\x00" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut by the end of the head is no evidence against text.
        return error.reason == "unexpected end of data" and error.start >= len(head) - 3
    return True
