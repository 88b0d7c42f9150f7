"""As which kind a file is taken, by signature first, then by extension; and which reader takes which kind."""

from pathlib import Path

from service.evidence.integrity.checker.sniff import (
    HEAD_BYTES,
    IMAGES,
    MEDIA,
    TAIL_BYTES,
    TEXTS,
    judged,
    sniff,
)

READERS: dict[str, str] = {
    "text": "texts:read_text",
    "code": "texts:read_code",
    "csv": "tables:read_csv",
    "tsv": "tables:read_csv",
    "json": "jsons:read_json",
    "jsonl": "jsons:read_jsonl",
    "ipynb": "notebooks:read_notebook",
    "html": "pages:read_html",
    "xml": "markup:read_xml",
    "svg": "markup:read_svg",
    "pdf": "pdfs:read_pdf",
    "zip": "archives:read_zip",
    "tar": "archives:read_tar",
    "7z": "archives:read_7z",
    **dict.fromkeys(("gz", "bz2", "xz"), "archives:read_packed"),
    **dict.fromkeys(IMAGES, "images:read_image"),
    # office documents, databases, mail, sound, film, models
    "xlsx": "workbooks:read_xlsx",
    "docx": "documents:read_docx",
    "pptx": "slides:read_pptx",
    **dict.fromkeys(("xls", "ods"), "converted:read_as_xlsx"),
    **dict.fromkeys(("doc", "odt", "rtf"), "converted:read_as_docx"),
    **dict.fromkeys(("ppt", "odp"), "converted:read_as_pptx"),
    "ole": "compound:read_ole",
    "sqlite": "databases:read_sqlite",
    "eml": "mails:read_eml",
    **dict.fromkeys(MEDIA, "media:read_media"),
    **dict.fromkeys(("glb", "gltf", "obj", "stl", "ply"), "models:read_model"),
    **dict.fromkeys(("step", "dxf", "fbx", "dwg", "3dm", "blend", "font"), "designs:read_design"),
}
"""Kind to ``module:function``."""
OFFICE = frozenset({"xlsx", "docx", "pptx", "xls", "ods", "doc", "odt", "rtf", "ppt", "odp"})
"""Kinds whose readers use the office program."""
_CODE = (
    "py js mjs cjs ts tsx jsx c h cc cpp cxx hpp hh rs go java kt kts scala rb php pl pm sh bash zsh ps1 bat sql r jl lua "
    "swift m cs fs vb dart ex exs erl hs ml clj lisp el asm s v vhd vhdl tex css scss less vue svelte yaml yml toml ini cfg "
    "conf env dockerfile makefile cmake gradle tf proto graphql"
)
CODE = frozenset(_CODE.split())
_BY_EXT = {
    "eml": "eml", "ply": "ply", "step": "step", "stp": "step", "dxf": "dxf", "fbx": "fbx", "dwg": "dwg", "3dm": "3dm",
    "blend": "blend",
}  # fmt: skip
"""Kinds of which the checker knows no signature."""
_OLD_OFFICE = {"doc": "doc", "xls": "xls", "ppt": "ppt"}
_FONTS = frozenset({"ttf", "otf", "woff", "woff2"})


def kind_of(path: Path, ext: str) -> tuple[str, str | None]:
    """Return as what the file is read (``binary``: as nothing), and what to say of its name where that lies."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        seen = sniff(head, file.read())
    as_kind, mismatch = judged(ext, seen)
    note = f"the name says {ext}, the content is {seen}" if mismatch else None
    kind = as_kind or seen
    if ext in _BY_EXT and (kind is None or kind in TEXTS):
        return _BY_EXT[ext], note
    return _named(kind, ext), note


def _named(kind: str | None, ext: str) -> str:
    if kind == "python" or (kind == "text" and ext in CODE):
        return "code"
    if kind == "ole":
        return _OLD_OFFICE.get(ext, "ole")
    if kind in _FONTS:
        return "font"
    return kind if kind in READERS else "binary"
