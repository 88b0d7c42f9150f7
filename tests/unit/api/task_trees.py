"""Task directories as data, and what the client and the service make of the same one."""

import io
import json
import re
import tarfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

from fastapi.exceptions import RequestValidationError

from service.api import json_body
from service.api.task_archives import manifest_of, receive
from service.archives.contract import ArchiveKind, ArchiveLimits
from service.domain.errors import Invalid
from service.domain.tasks import TaskManifest
from service.store.blobs import BlobStore
from workstead.task_dir import InvalidInput, read_task_dir

Tree = Mapping[str, bytes]
TASK = b'name = "t/one"\nenvironment = "workbench"\n'
WHOLE: dict[str, bytes] = {"task.toml": TASK, "instruction.md": b"Do it.\n"}


PAGE = (Path(__file__).parents[3] / "docs" / "task-bundles.md").read_text()
EXAMPLE: dict[str, bytes] = {
    name: text.encode()
    for name, text in re.findall(r"^\*\*`([^`]+)`\*\*\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
}
"""The example of the documentation."""


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def packed(tree: Tree, top: str = "", format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for path, data in tree.items():
            info = tarfile.TarInfo(top + path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def write_tree(tree: Tree, folder: Path) -> None:
    for path, data in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def by_client(tree: Tree, folder: Path) -> TaskManifest | list[str]:
    """Return what the service would read of the JSON that the client sends, or the client's complaints."""
    write_tree(tree, folder)
    try:
        sent = json.dumps(read_task_dir(folder).manifest, allow_nan=False)
    except InvalidInput as error:
        return sorted(error.problems)
    return TaskManifest.model_validate(json_body.parse(sent.encode()))


async def by_service(tree: Tree, blobs: BlobStore, top: str = "") -> TaskManifest | list[str]:
    """Return what the service makes of the directory as an archive, or its complaints."""
    with blobs.staging() as staging:
        try:
            found = await receive(_pieces(packed(tree, top)), ArchiveKind.TAR, ArchiveLimits(), blobs, staging)
            return manifest_of(found, staging)[0]
        except Invalid as error:
            return sorted(f"{e['pointer'][2:]}: {e['detail']}" for e in error.fields["errors"])
        except RequestValidationError as error:
            return sorted(str(e["loc"]) for e in error.errors())


async def _pieces(data: bytes) -> AsyncGenerator[bytes]:
    for at in range(0, len(data), 65_536):
        yield data[at : at + 65_536]
