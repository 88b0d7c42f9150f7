"""From a task directory to a task."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workstead.importers.drafts import Draft, slug
from workstead.importers.files import Contents, Entry, is_folder, locate, path_trouble
from workstead.importers.harbor.config import Config, read_config
from workstead.importers.harbor.dockerfile import Dockerfile, parse_dockerfile
from workstead.importers.harbor.layout import image_name
from workstead.importers.harbor.places import MAX_ROOTS, Placed, Places, loose
from workstead.importers.harbor.settings import NAME, Settings
from workstead.importers.harbor.solution import solution_files
from workstead.importers.harbor.verifier import MAX_TESTS_BYTES, PYTEST, PYTEST_SCRIPT, grader_of, needs_of
from workstead.importers.trees import take_tree
from workstead.task_dir import read_text

LIMITS: dict[str, float] = {"wall_clock_s": 3600.0, "cpus": 1.0, "memory_bytes": 2 << 30, "disk_bytes": 10 << 30}
SMALLEST: dict[str, float] = {"cpus": 0.1, "memory_bytes": 64 << 20, "disk_bytes": 64 << 20}
INSTRUCTION, TESTS = "instruction.md", "tests"
COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
NOT_COPIED = frozenset({"Dockerfile", ".dockerignore", *COMPOSE})
MAX_LOOKED_INTO = 1 << 20
"""Bytes of a test's file that are looked through for paths."""
WORKSPACE_TOLD = "Your working directory is {folder}."


class TaskMaker:
    def __init__(
        self,
        root: Path,
        settings: Settings,
        images: Mapping[str, str],
        web: Mapping[str, Any],
        contents: Contents,
    ) -> None:
        """``web``: what a task has that may use the network."""
        self._root, self._settings, self._images, self._web = root, settings, images, web
        self._contents, self._places = contents, Places(settings.links)

    def fill(self, folder: Path, draft: Draft) -> None:
        """Make the task of a folder, or say on the draft why none can be made. Raises OSError."""
        config = read_config(folder, draft)
        context = folder / "environment" if is_folder(folder / "environment") else folder
        dockerfile = self._dockerfile(context, config, draft)
        tests = self._tests(folder, draft, config)
        instruction = _instruction(folder, config, draft)
        if config is None or draft.status == "quarantined":
            return
        texts = [instruction, *_looked_into(folder / TESTS)]
        self._refuse(config, dockerfile, texts, folder, draft)
        visible = self._visible(context, dockerfile, draft)
        roots = self._roots(dockerfile, texts, visible, draft)
        if draft.status == "quarantined":
            return
        hidden = [*tests, *solution_files(folder, self._contents, self._root, self._workdir(dockerfile), draft)]
        draft.task = self._task(draft, config, dockerfile, _told(instruction, dockerfile), visible, hidden, roots)
        if config.env_names:
            draft.note(
                "env_not_heeded", "", f"the agent's programs are started without {', '.join(config.env_names)[:500]}"
            )
        self._say_image(context, config, draft)

    def _dockerfile(self, context: Path, config: Config | None, draft: Draft) -> Dockerfile:
        problems: list[str] = []
        path = context / "Dockerfile"
        if not os.path.lexists(path):
            if config is not None and config.docker_image is None and draft.key not in self._images:
                draft.quarantine("no_environment", "environment", "has neither a Dockerfile nor a docker_image")
            return Dockerfile()
        text = read_text(path, "Dockerfile", problems)
        for problem in problems:
            draft.quarantine("bad_file", "Dockerfile", problem.removeprefix("Dockerfile: "))
        return parse_dockerfile(text or "")

    def _tests(self, folder: Path, draft: Draft, config: Config | None) -> list[dict[str, Any]]:
        refs = take_tree(folder / TESTS, draft, self._contents, self._root, f"{TESTS}/")
        if not refs:
            draft.quarantine("no_tests", TESTS, "a task without tests cannot be solved or failed")
        if self._by_pytest(config):
            refs.append(self._contents.make(f"{TESTS}/{PYTEST}", PYTEST_SCRIPT))
        elif not any(ref["path"] == f"{TESTS}/test.sh" for ref in refs):
            draft.quarantine("no_tests", f"{TESTS}/test.sh", "is missing; option verifier=pytest does without it")
        size = sum(int(ref["size_bytes"]) for ref in refs)
        if size > MAX_TESTS_BYTES:
            draft.quarantine("unsupported", TESTS, f"needs {size} bytes of tests; {MAX_TESTS_BYTES} are allowed")
        return refs

    def _by_pytest(self, config: Config | None) -> bool:
        return self._settings.verifier == "pytest" or (config is not None and config.by_pytest)

    def _refuse(self, config: Config, dockerfile: Dockerfile, texts: list[str], folder: Path, draft: Draft) -> None:
        needs = [*config.needs, *self._places.troubles(dockerfile, texts)]
        script = folder / TESTS / "test.sh"
        if not self._by_pytest(config):
            needs += needs_of(read_text(script, "test.sh", []) or "")
        for place in (folder, folder / "environment"):
            needs += [need for name in COMPOSE for need in _services(place / name)]
        for need in dict.fromkeys(needs):
            draft.quarantine("unsupported", "", f"needs {need}")

    def _visible(self, context: Path, dockerfile: Dockerfile, draft: Draft) -> list[dict[str, Any]]:
        refs: dict[str, dict[str, Any]] = {}
        for placed in self._places.copied(dockerfile):
            # A later COPY of the same path wins, as it does in the image.
            refs.update({str(ref["path"]): ref for ref in self._copied(context, placed, draft)})
        return list(refs.values())

    def _copied(self, context: Path, placed: Placed, draft: Draft) -> Iterator[dict[str, Any]]:
        source = context if placed.source == "." else context / placed.source
        prefix = f"{placed.target}/" if placed.target else ""
        if placed.source != "." and (trouble := path_trouble(placed.source)):
            draft.quarantine("bad_file", placed.source, trouble)
        elif is_folder(source):
            for ref in take_tree(source, draft, self._contents, self._root, prefix):
                if str(ref["path"]).removeprefix(prefix) not in NOT_COPIED:
                    yield ref
        elif file := locate(context, (placed.source,)):
            path = f"{prefix}{file.name}" if placed.into else placed.target
            yield self._contents.take(Entry(placed.source, file), path, self._root)
        else:
            draft.quarantine("missing_file", placed.source, "is copied by the Dockerfile and not there")

    def _roots(
        self, dockerfile: Dockerfile, texts: list[str], visible: list[dict[str, Any]], draft: Draft
    ) -> list[str]:
        if self._settings.collect is not None:
            return sorted(set(self._settings.collect.split(",")))
        if named := loose(self._places, texts):
            detail = f"needs {', '.join(named)[:500]} delivered, directly in /workspace, where only folders are"
            draft.quarantine("unsupported", "", f"{detail}; option collect names folders that do")
        roots = self._places.roots(dockerfile, texts, [str(ref["path"]) for ref in visible])
        if len(roots) > MAX_ROOTS:
            draft.quarantine("unsupported", "", f"needs {len(roots)} folders delivered; {MAX_ROOTS} are allowed")
        draft.note("collects", "", ", ".join(roots))
        return roots

    def _task(
        self,
        draft: Draft,
        config: Config,
        dockerfile: Dockerfile,
        instruction: str,
        visible: list[dict[str, Any]],
        hidden: list[dict[str, Any]],
        roots: list[str],
    ) -> dict[str, Any]:
        s = self._settings
        size = sum(int(ref["size_bytes"]) for ref in hidden if str(ref["path"]).startswith(f"{TESTS}/"))
        grader = grader_of(
            self._workdir(dockerfile),
            config.verifier_s,
            config.verifier_env,
            config.limits.get("memory_bytes"),
            size,
            pytest=self._by_pytest(config),
        )
        own = {name: max(value, SMALLEST.get(name, 0.0)) for name, value in config.limits.items()}
        return {
            "name": f"{NAME}/{slug(draft.key.replace('/', '-'))}",
            "instruction": instruction,
            "visible": visible,
            "hidden": hidden,
            "environment": s.environment or self._images.get(draft.key) or image_name(draft.key),
            "collect": roots,
            "limits": s.limits({**LIMITS, **own}),
            "facets": config.facets,
            "labels": {},
            "graders": [grader],
            **(self._web if config.internet and s.network == "declared" else {}),
        }

    def _workdir(self, dockerfile: Dockerfile) -> str:
        below = self._places.below(dockerfile.workdir)
        return f"/workspace/{below}" if below else "/workspace"

    def _say_image(self, context: Path, config: Config, draft: Draft) -> None:
        if self._settings.environment is not None or draft.key in self._images:
            return
        name = image_name(draft.key)
        if (context / "Dockerfile").exists():
            path = context.relative_to(self._root).as_posix()
            draft.note("build_environment", path, f"workstead images build {name} {path}")
        else:
            draft.note(
                "build_environment", "", f"workstead images add {name} {str(config.docker_image)[:300]} (by its digest)"
            )


def _instruction(folder: Path, config: Config | None, draft: Draft) -> str:
    if config is not None and config.instruction is not None:
        text: str | None = config.instruction
    else:
        problems: list[str] = []
        text = read_text(folder / INSTRUCTION, INSTRUCTION, problems)
        for problem in problems:
            draft.quarantine("bad_instructions", INSTRUCTION, problem.removeprefix(f"{INSTRUCTION}: "))
    if text is not None and not text.strip():
        draft.quarantine("bad_instructions", INSTRUCTION, "is empty")
    return text or ""


def _told(instruction: str, dockerfile: Dockerfile) -> str:
    """An agent starts in /workspace, wherever the image would have it."""
    if dockerfile.workdir in ("/", "/workspace"):
        return instruction
    return f"{instruction.rstrip()}\n\n{WORKSPACE_TOLD.format(folder=dockerfile.workdir)}\n"


def _looked_into(folder: Path) -> Iterator[str]:
    """Yield the texts of tests, as far as they are texts."""
    left = 16 * MAX_LOOKED_INTO
    for path in sorted(folder.rglob("*")) if is_folder(folder) else []:
        if path.suffix in (".py", ".sh") and path.is_file() and not path.is_symlink() and left > 0:
            with path.open("rb") as file:
                data = file.read(MAX_LOOKED_INTO)
            left -= len(data)
            yield data.decode("utf-8", "replace")


def _services(path: Path) -> Iterator[str]:
    """Yield what a compose file asks for beside one container."""
    if not os.path.lexists(path):
        return
    text = read_text(path, path.name, []) or ""
    names = [line.strip() for line in _below(text, "services:") if line.rstrip().endswith(":")]
    if len(names) != 1:
        yield f"services ({path.name} has {len(names)} containers)"


def _below(text: str, key: str) -> Iterator[str]:
    """Yield the keys directly below a top-level key."""
    within, indent = False, 0
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        deep = len(line) - len(line.lstrip(" "))
        if deep == 0:
            within, indent = line.strip() == key, 0
        elif within:
            indent = indent or deep
            if deep == indent:
                yield line
