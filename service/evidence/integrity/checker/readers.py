"""Which reader opens which kind of file. Kinds without one are not judged."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from service.evidence.integrity.checker.findings import Seen
from service.evidence.integrity.checker.sniff import IMAGES, MEDIA, OOXML

_PACKAGE = "service.evidence.integrity.checker"
READERS: dict[str, str] = {
    **dict.fromkeys(IMAGES, "pictures:read_picture"),
    **dict.fromkeys(MEDIA, "media:read_media"),
    **dict.fromkeys(OOXML, "office:read_office"),
    **dict.fromkeys(("odt", "ods", "odp"), "office:read_open_document"),
    **dict.fromkeys(("gz", "bz2", "xz"), "archives:read_packed"),
    **dict.fromkeys(("csv", "tsv"), "texts:read_csv"),
    **dict.fromkeys(("ttf", "otf", "woff", "woff2"), "data:read_font"),
    "epub": "office:read_epub",
    "ole": "ole:read_ole",
    "pdf": "pdf:read_pdf",
    "svg": "markup:read_svg",
    "xml": "markup:read_xml",
    "zip": "zips:read_zip",
    "tar": "archives:read_tar",
    "7z": "archives:read_7z",
    "text": "texts:read_text",
    "html": "texts:read_html",
    "json": "texts:read_json",
    "jsonl": "texts:read_jsonl",
    "ipynb": "texts:read_notebook",
    "python": "texts:read_python",
    "sqlite": "data:read_sqlite",
    "parquet": "data:read_parquet",
    "rtf": "data:read_rtf",
    "glb": "data:read_glb",
    "gltf": "data:read_gltf",
    "obj": "data:read_obj",
    "stl": "data:read_stl",
}
"""Kind to ``module:function``: a room opens few kinds, and loads what it needs once, before the files are opened."""
Reader = Callable[[Path, str], Seen]


def reader_of(kind: str | None) -> Reader | None:
    """Return the reader (path, kind) → Seen, which may raise Trouble; null where there is none."""
    if kind not in READERS:
        return None
    module, _, function = READERS[kind].partition(":")
    return cast("Reader", getattr(importlib.import_module(f"{_PACKAGE}.{module}"), function))
