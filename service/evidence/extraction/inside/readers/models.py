"""3D models: how many vertices, faces and materials, how large. The shape itself is not shown."""

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from service.evidence.extraction.inside.contract import Failed, Output

MAX_BYTES = 512 << 20
MAX_JSON = 64 << 20
_NAMES = 200
_TRIANGLE = struct.Struct("<12fH")
Row = dict[str, Any]


@dataclass(slots=True)
class Model:
    vertices: int = 0
    faces: int = 0
    materials: list[str] = field(default_factory=list[str])
    objects: list[str] = field(default_factory=list[str])
    low: list[float] = field(default_factory=list[float])
    high: list[float] = field(default_factory=list[float])
    units: str = "not stated"
    extra: dict[str, int | str] = field(default_factory=dict[str, int | str])

    def point(self, place: Iterable[float]) -> None:
        """Take a vertex into the bounding box."""
        at = list(place)[:3]
        self.low = [min(a, b) for a, b in zip(self.low, at, strict=True)] if self.low else at
        self.high = [max(a, b) for a, b in zip(self.high, at, strict=True)] if self.high else at


def read_model(path: Path, out: Output) -> None:
    """Raises Failed."""
    if path.stat().st_size > MAX_BYTES:
        raise Failed("too_large", f"more than {MAX_BYTES >> 20} MiB")
    try:
        model = _READERS[out.kind](path)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error) as error:
        raise Failed("cannot_open", f"{type(error).__name__}: {error}"[:300]) from error
    for name, value in (
        ("vertices", model.vertices),
        ("faces", model.faces),
        ("materials", len(model.materials)),
        ("units", model.units),
    ):
        out.fact(name, value)
    for name, value in model.extra.items():
        out.fact(name, value)
    if model.low:
        size = [round(high - low, 6) for low, high in zip(model.low, model.high, strict=True)]
        out.fact("bounding_box", " x ".join(f"{side:g}" for side in size))
        out.fact("from", ", ".join(f"{side:g}" for side in model.low))
    for label, names in (("materials", model.materials), ("objects", model.objects)):
        out.part("listing", label, "\n".join(name[:200] for name in names[:_NAMES]))
        out.omit(rows=max(0, len(names) - _NAMES))


def _lines(path: Path) -> Iterator[str]:
    with path.open("r", encoding="utf-8", errors="replace") as file:
        while line := file.readline(65536):
            yield line


def _obj(path: Path) -> Model:
    model = Model()
    for line in _lines(path):
        word, _, rest = line.strip().partition(" ")
        if word == "v":
            model.vertices += 1
            model.point(float(number) for number in rest.split()[:3])
        elif word == "f":
            model.faces += 1
        elif word == "usemtl" and rest not in model.materials and len(model.materials) < 10 * _NAMES:
            model.materials.append(rest)
        elif word in ("o", "g") and len(model.objects) < 10 * _NAMES:
            model.objects.append(rest)
    if not model.vertices:
        raise Failed("cannot_open", "no vertex in it")
    return model


def _stl(path: Path) -> Model:
    model = Model()
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(84)
        many = struct.unpack_from("<I", head, 80)[0] if len(head) == 84 else 0
        if size == 84 + 50 * many:
            for _ in range(many):
                numbers = _TRIANGLE.unpack(file.read(50))
                for corner in (3, 6, 9):
                    model.point(numbers[corner : corner + 3])
            model.faces, model.vertices = many, 3 * many
            return model
    for line in _lines(path):
        words = line.split()
        if words[:1] == ["vertex"]:
            model.vertices += 1
            model.point(float(number) for number in words[1:4])
        model.faces += words[:1] == ["endfacet"]
    if not model.faces:
        raise Failed("cannot_open", "no triangle in it")
    return model


def _ply(path: Path) -> Model:
    model = Model()
    with path.open("rb") as file:
        if file.readline(16).strip() != b"ply":
            raise Failed("cannot_open", "no ply")
        for _ in range(1000):
            words = file.readline(1000).decode("ascii", "replace").split()
            if words[:1] == ["end_header"]:
                return model
            if words[:1] == ["format"]:
                model.extra["format"] = words[1]
            if words[:2] in (["element", "vertex"], ["element", "face"]):
                setattr(model, {"vertex": "vertices", "face": "faces"}[words[1]], int(words[2]))
    raise Failed("cannot_open", "its header does not end")


def _glb(path: Path) -> Model:
    with path.open("rb") as file:
        head = file.read(20)
        length, word = struct.unpack_from("<I4s", head, 12)
        if word != b"JSON" or length > MAX_JSON:
            raise Failed("cannot_open", "no description")
        return _scene(json.loads(file.read(length)))


def _gltf(path: Path) -> Model:
    if path.stat().st_size > MAX_JSON:
        raise Failed("too_large", f"more than {MAX_JSON >> 20} MiB of description")
    return _scene(json.loads(path.read_bytes()))


def _scene(top: Row) -> Model:
    """Sizes are those of the meshes, before the nodes move and scale them."""
    model = Model(units="metres, by the format")
    accessors = cast("list[Row]", top.get("accessors", []))
    for mesh in cast("list[Row]", top.get("meshes", [])):
        model.objects.append(str(mesh.get("name", "mesh")))
        primitives: list[Row] = mesh["primitives"]
        for primitive in primitives:
            position = accessors[int(primitive["attributes"]["POSITION"])]
            model.vertices += int(position["count"])
            corners = accessors[int(primitive["indices"])] if "indices" in primitive else position
            model.faces += int(corners["count"]) // 3
            for side in ("min", "max"):
                if side in position:
                    model.point(map(float, cast("list[float]", position[side])))
    model.materials = [str(one.get("name", "material")) for one in top.get("materials", [])]
    for name in ("nodes", "textures", "images", "animations", "cameras", "skins"):
        model.extra[name] = len(top.get(name, []))
    model.extra["generator"] = str(top["asset"].get("generator", ""))[:200]
    return model


_READERS = {"obj": _obj, "stl": _stl, "ply": _ply, "glb": _glb, "gltf": _gltf}
