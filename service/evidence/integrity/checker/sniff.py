"""What a file is, by signature, and what its name claims. Nothing is parsed here: bytes at fixed places are compared."""

HEAD_BYTES, TAIL_BYTES = 4096, 65536

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "png"),
    (0, b"\xff\xd8\xff", "jpeg"),
    (0, b"GIF87a", "gif"),
    (0, b"GIF89a", "gif"),
    (0, b"BM", "bmp"),
    (0, b"II*\x00", "tiff"),
    (0, b"MM\x00*", "tiff"),
    (0, b"8BPS", "psd"),
    (0, b"\x00\x00\x01\x00", "ico"),
    (8, b"WEBP", "webp"),
    (8, b"WAVE", "wav"),
    (8, b"AVI ", "avi"),
    (4, b"ftyp", "mp4"),
    (0, b"ID3", "mp3"),
    (0, b"\xff\xfb", "mp3"),
    (0, b"\xff\xf3", "mp3"),
    (0, b"OggS", "ogg"),
    (0, b"fLaC", "flac"),
    (0, b"FORM", "aiff"),
    (0, b"\x1aE\xdf\xa3", "mkv"),
    (0, b"FLV\x01", "flv"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "asf"),
    (0, b"\x00\x00\x01\xba", "mpeg"),
    (0, b"\x1f\x8b", "gz"),
    (0, b"BZh", "bz2"),
    (0, b"\xfd7zXZ\x00", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "zst"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
    (0, b"Rar!\x1a\x07", "rar"),
    (257, b"ustar", "tar"),
    (0, b"SQLite format 3\x00", "sqlite"),
    (0, b"PAR1", "parquet"),
    (0, b"\x7fELF", "elf"),
    (0, b"MZ", "exe"),
    (0, b"wOFF", "woff"),
    (0, b"wOF2", "woff2"),
    (0, b"OTTO", "otf"),
    (0, b"\x00\x01\x00\x00\x00", "ttf"),
    (0, b"true", "ttf"),
    (0, b"glTF", "glb"),
    (0, b"{\\rtf", "rtf"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
)
_RIFF = frozenset({"webp", "wav", "avi"})
_OPEN_DOCUMENT = {b"text": "odt", b"spreadsheet": "ods", b"presentation": "odp"}
_OFFICE_MEMBERS = ((b"word/document", "docx"), (b"xl/workbook", "xlsx"), (b"ppt/presentation", "pptx"))

IMAGES = frozenset({"png", "jpeg", "gif", "webp", "bmp", "tiff", "psd", "ico"})
MEDIA = frozenset({"wav", "avi", "mp4", "mp3", "ogg", "flac", "aiff", "mkv", "flv", "asf", "mpeg", "aac"})
TEXTS = frozenset(
    {"text", "json", "jsonl", "csv", "tsv", "xml", "svg", "html", "ipynb", "python", "gltf", "obj", "stl"}
)
ZIPPED = frozenset({"docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "zip"})
OOXML = frozenset({"docx", "xlsx", "pptx"})

_NAMES: dict[str, str] = {
    "docx": "docx docm dotx", "xlsx": "xlsx xlsm xltx", "pptx": "pptx pptm ppsx", "ole": "doc xls ppt msg",
    "jpeg": "jpg jpeg jpe", "tiff": "tif tiff", "mp4": "mp4 m4v mov m4a 3gp", "mkv": "mkv webm mka", "ogg": "ogg oga ogv opus",
    "aiff": "aiff aif", "asf": "wma wmv asf", "mpeg": "mpg mpeg", "zip": "zip jar", "gz": "gz tgz", "html": "html htm",
    "json": "json geojson", "jsonl": "jsonl ndjson", "xml": "xml xhtml xsl xslt xsd rss kml gpx", "python": "py",
    "sqlite": "sqlite sqlite3 db",
    "text": "txt md markdown rst log css js mjs ts tsx jsx c h cpp hpp rs go java rb php sh sql r tex yaml yml toml ini srt vtt",
}  # fmt: skip
_SAME_NAME = (
    "pdf odt ods odp epub png gif webp bmp psd ico svg wav avi mp3 flac flv aac tar bz2 xz 7z rar csv tsv ipynb ttf otf"
    " woff woff2 glb gltf obj stl parquet rtf"
)
CLAIMS: dict[str, str] = {
    **{ext: kind for kind, names in _NAMES.items() for ext in names.split()},
    **{ext: ext for ext in _SAME_NAME.split()},
}
"""Extension to kind."""


def sniff(head: bytes, tail: bytes) -> str | None:
    """Return what a file with this beginning and end is; null where unknown."""
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _zipped(head, tail)
    if b"%PDF-" in head[:1024]:
        return "pdf"
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset) and (kind not in _RIFF or head.startswith(b"RIFF")):
            return kind
    return _text(head)


def _zipped(head: bytes, tail: bytes) -> str:
    if head[30:38] == b"mimetype":
        declared = head[38:120]
        if declared.startswith(b"application/epub+zip"):
            return "epub"
        for word, kind in _OPEN_DOCUMENT.items():
            if declared.startswith(b"application/vnd.oasis.opendocument." + word):
                return kind
    return next((kind for member, kind in _OFFICE_MEMBERS if member in head or member in tail), "zip")


def _text(head: bytes) -> str | None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text"
    if not head or b"\x00" in head:
        return None
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data" or error.start < len(head) - 3:
            return None
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:512].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "html"
    if start.startswith((b"<?xml", b"<svg")):
        return "svg" if b"<svg" in start else "xml"
    return "text"


def judged(ext: str, sniffed: str | None) -> tuple[str | None, bool]:
    """Return as what a file is to be read (null: as nothing), and whether name and content disagree."""
    claimed = CLAIMS.get(ext)
    if claimed is None or claimed == sniffed:
        return sniffed, False
    if sniffed is None or (claimed in TEXTS and sniffed in TEXTS):
        return claimed, False
    if claimed in ZIPPED and sniffed == "zip":
        return claimed, False
    if claimed == "zip" and sniffed in ZIPPED:
        return "zip", False
    if claimed in OOXML and sniffed == "ole":  # a document with a password is one
        return "ole", False
    if claimed in MEDIA and sniffed in MEDIA:  # containers are many names for few things
        return sniffed, False
    if claimed in IMAGES and sniffed in IMAGES:
        return sniffed, True
    return None, True
