"""Which image metadata is refused, and what of it the profile must know."""

from typing import Any

import pytest

from service.domain.images import MAX_VOLUMES
from service.sandboxes.contract import SandboxRefused
from service.sandboxes.docker.images import GLIBC_LOADER, MUSL_LOADER, check_acceptable, metadata


def image(**config: Any) -> dict[str, Any]:
    return {"Id": "sha256:" + "a" * 64, "Config": config}


@pytest.mark.fault(7)
@pytest.mark.parametrize(
    "path",
    ["/proc/self/fd/8", "/proc", "/sys/fs", "/dev/fd/3", "relative", "/a/../proc/x", "/a//b", "/a/", "/a\nb", "/a:b"],
)
def test_a_dangerous_workdir_is_refused(path: str) -> None:
    with pytest.raises(SandboxRefused, match="WORKDIR"):
        check_acceptable(image(WorkingDir=path))


@pytest.mark.parametrize("path", ["/proc/x", "/", "/workspace/x", "/run/workstead", "/opt/kit/y", "/v,w", "x"])
def test_a_dangerous_volume_is_refused(path: str) -> None:
    with pytest.raises(SandboxRefused):
        check_acceptable(image(Volumes={path: {}}))


def test_too_much_metadata_is_refused() -> None:
    with pytest.raises(SandboxRefused):
        check_acceptable(image(Volumes={f"/v{i}": {} for i in range(MAX_VOLUMES + 1)}))
    with pytest.raises(SandboxRefused):
        check_acceptable(image(Env=[f"A{i}=x" for i in range(300)]))
    with pytest.raises(SandboxRefused):
        check_acceptable(image(OnBuild=["RUN x"]))


def test_ordinary_images_are_accepted() -> None:
    check_acceptable(image(WorkingDir="/srv/app", Volumes={"/data": {}}, Env=["PATH=/bin"], OnBuild=None))
    check_acceptable(image(WorkingDir="", Volumes=None))
    check_acceptable({"Id": "x", "Config": None})


def test_metadata() -> None:
    facts = metadata(image(Env=["A=b=c", "LD_PRELOAD=/x"], Volumes={"/b": {}, "/a": {}}, Labels={"x": "y"}))
    assert facts.env_names == ("A", "LD_PRELOAD")
    assert facts.volumes == ("/a", "/b")
    assert facts.label_names == ("x",)


@pytest.mark.parametrize(
    ("has", "interpreter", "musl"),
    [
        ((), None, False),
        ((MUSL_LOADER, "/usr/bin/python3"), "/usr/bin/python3", True),
        ((MUSL_LOADER, GLIBC_LOADER), None, False),
        (("/usr/bin/python3", "/usr/local/bin/python3"), "/usr/local/bin/python3", False),
    ],
)
def test_what_an_environment_has(has: tuple[str, ...], interpreter: str | None, musl: bool) -> None:
    facts = metadata(image(), has)
    assert (facts.interpreter, facts.musl) == (interpreter, musl)
