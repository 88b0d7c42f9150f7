"""``workstead images …``: environments and kits that a project brings, and building them on this machine."""

import os
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workstead.catalogue import BroughtImage
from workstead.cli.common import FAILED, emit, fail, in_words, line, out
from workstead.cli.models import FromEnv, read_secret
from workstead.cli.options import Json, Limit
from workstead.cli.tables import plain_table
from workstead.cli.watch import note
from workstead.models import Operation
from workstead.sync import Client
from workstead.terminal import one_line

images_app = typer.Typer(help="Environments and kits of your own.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="How tasks and scaffolds call it", show_default=False)]
Which = Annotated[str, typer.Argument(help="Image: its name or id", show_default=False)]
Source = Annotated[
    str,
    typer.Argument(help="What `docker save` wrote, or host/name@sha256:digest in a registry", show_default=False),
]
Username = Annotated[str | None, typer.Option(help="Of the registry; its password is then read")]
Context = Annotated[Path, typer.Argument(help="Folder with a Dockerfile", exists=True, file_okay=False)]
Dockerfile = Annotated[Path | None, typer.Option(help="Another file than CONTEXT/Dockerfile", dir_okay=False)]
BuildArg = Annotated[list[str] | None, typer.Option("--build-arg", help="NAME=VALUE for the build; it stays readable")]
BUILD_S, SAVE_S = 3600.0, 1800.0
_PASSED = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_BUILDKIT")


@images_app.command("list")
@in_words
def list_images(limit: Limit = 50, as_json: Json = False) -> None:
    """List the project's images. With --json one object per line."""
    with Client() as client:
        found = list(client.images.list(limit=limit))
    for image in found if as_json else ():
        emit(image)
    if not as_json:
        rows = [(i.id, i.name, i.state, _size(i), i.created_at) for i in found]
        out.print(plain_table(("image", "name", "state", "size", "made"), rows))


@images_app.command("add")
@in_words
def add_image(
    name: Name, source: Source, username: Username = None, from_env: FromEnv = None, as_json: Json = False
) -> None:
    """Bring an image and wait until a host has it. Exit code 1 if it is refused."""
    with Client() as client:
        if "@sha256:" in source:
            secret = None if username is None else read_secret(from_env)
            made = client.images.fetch(name, source, username=username, secret=secret)
        else:
            made = client.images.upload(name, Path(source))
        _finish(client, made, as_json=as_json)


@images_app.command("show")
@in_words
def show_image(image: Which, as_json: Json = False) -> None:
    """Show what was found of an image, and what of it sandboxes do not heed."""
    with Client() as client:
        found = _find(client, image)
    emit(found) if as_json else _show(found)


@images_app.command("delete")
@in_words
def delete_image(image: Which) -> None:
    """Delete an image that no run needs any more; hosts remove it."""
    with Client() as client:
        found = _find(client, image)
        client.images.delete(found.id)
    line(f"{found.name}: deleted")


@images_app.command("build")
@in_words
def build_image(
    name: Name,
    context: Context,
    dockerfile: Dockerfile = None,
    build_arg: BuildArg = None,
    as_json: Json = False,
) -> None:
    """Build a folder with this machine's `docker`, then bring the image. The build sees no variable of this shell."""
    with tempfile.TemporaryDirectory(prefix="workstead-image-") as folder, Client() as client:
        archive = Path(folder) / "image.tar"
        build(context, archive, dockerfile, build_arg or [])
        _finish(client, client.images.upload(name, archive), as_json=as_json)


def build(context: Path, archive: Path, dockerfile: Path | None, build_args: Sequence[str]) -> None:
    """Build and save; nothing but ``archive`` stays. Raises typer.Exit through ``fail`` where docker fails."""
    tag = f"workstead-build:{uuid.uuid4().hex}"
    argv = ["docker", "build", "--tag", tag, *(f"--build-arg={one}" for one in build_args)]
    argv += [f"--file={dockerfile}"] if dockerfile is not None else []
    environ = {key: value for key in _PASSED if (value := os.environ.get(key)) is not None}
    _docker([*argv, str(context)], environ, BUILD_S)
    try:
        _docker(["docker", "save", "--output", str(archive), tag], environ, SAVE_S)
    finally:
        forget = ["docker", "rmi", tag]
        subprocess.run(forget, env=environ, capture_output=True, timeout=SAVE_S, check=False)


def _docker(argv: Sequence[str], environ: Mapping[str, str], timeout_s: float) -> None:
    """What docker says goes to standard error."""
    try:
        done = subprocess.run(
            argv, env=dict(environ), stdin=subprocess.DEVNULL, stdout=2, timeout=timeout_s, check=False
        )
    except FileNotFoundError as error:
        raise fail("there is no `docker` command here: build elsewhere, and bring what `docker save` writes") from error
    except subprocess.TimeoutExpired as error:
        raise fail(f"{' '.join(argv[:2])} took over {timeout_s:.0f} s") from error
    if done.returncode:
        raise fail(f"{' '.join(argv[:2])} failed with {done.returncode}")


def _finish(client: Client, made: BroughtImage, *, as_json: bool) -> None:
    done: Operation | None = None
    if made.operation_id is not None and made.state == "pending":
        done = client.operations.wait(made.operation_id, _say)
    image = client.images.get(made.id)
    emit(image) if as_json else _show(image)
    hosts: Sequence[Any] = ((done.result or {}).get("hosts") or []) if done is not None else []
    if hosts and not as_json:
        line(f"on hosts: {one_line(', '.join(map(str, hosts)), 300)}")
    if image.state != "ready":
        problem = (done.problem if done is not None else None) or {}
        if not as_json and problem and image.state == "pending":
            line(f"{problem.get('type')}: {one_line(str(problem.get('detail')), 300)}")
        raise typer.Exit(FAILED)


def _say(operation: Operation) -> None:
    note(f"{operation.state}, {operation.done >> 20} MiB")


def _show(image: BroughtImage) -> None:
    report = image.report
    refused: Mapping[str, Any] = report.get("refused") or {}
    line(f"{image.id}: {image.name}, {image.state}" + (f", {_size(image)}" if _size(image) else ""))
    if refused:
        line(f"refused, {refused.get('type')}: {one_line(str(refused.get('detail')), 300)}")
    for told in report.get("overridden") or ():
        line(f"  not heeded: {one_line(str(told), 300)}")


def _size(image: BroughtImage) -> str | None:
    size = image.report.get("size_bytes")
    return None if size is None else f"{int(size) / (1 << 20):.0f} MiB"


def _find(client: Client, image: str) -> BroughtImage:
    if image.startswith("img_"):
        return client.images.get(image)
    for found in client.images.list({"name": image}, limit=1):
        return found
    raise fail(f"no image {image}: see `workstead images list`")
