"""Makes the programs below a kit's folder use the kit's own loader and C library, byte for byte in place.

Each dynamic program names its loader; that name is overwritten by the shorter name of the kit's own. The loader names
the folders that it searches, with their lengths kept elsewhere; they are overwritten by the kit's folder, padded with
slashes. Nothing moves, so programs that carry data behind their ELF image (Bun, PyInstaller) stay whole, and no variable
is set that the agent's own commands, which use the environment's library, would inherit.

``python3 relocate.py FOLDER``; exits 1 when a program cannot be made so.
"""

import struct
import sys
from pathlib import Path

KIT_LIB = b"/opt/kit/lib"
LOADER = KIT_LIB + b"/ld.so"
FOREIGN = (b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-linux-x86-64.so.2")
OTHERS = b"\0/lib/\0/usr/lib/\0"
# The longer one first: the shorter one is its end.
SEARCHED = (b"/usr/lib/x86_64-linux-gnu/", b"/lib/x86_64-linux-gnu/")
CACHE = b"/etc/ld.so.cache"
_PT_INTERP = 3


class NotMovable(Exception):
    """A program that needs a loader which the kit does not have."""


def interpreter(head: bytes) -> tuple[int, int] | None:
    """Return (offset, size) of the loader's name in a 64-bit ELF image; null: it names none, or is no ELF image."""
    if head[:5] != b"\x7fELF\x02" or len(head) < 64:
        return None
    start, size, count = struct.unpack_from("<Q14xHH", head, 32)
    for i in range(count):
        entry = start + i * size
        if len(head) >= entry + 56 and struct.unpack_from("<I", head, entry)[0] == _PT_INTERP:
            offset, _, _, length = struct.unpack_from("<4Q", head, entry + 8)
            return offset, length
    return None


def move(path: Path) -> bool:
    """Give one program the kit's loader. Returns whether it was changed. Raises NotMovable."""
    with path.open("r+b") as file:
        head = file.read(65536)
        found = interpreter(head)
        if found is None:
            return False
        offset, length = found
        file.seek(offset)
        name = file.read(length).rstrip(b"\0")
        if name == LOADER:
            return False
        if name not in FOREIGN or len(LOADER) >= length:
            raise NotMovable(f"{path} needs the loader {name.decode(errors='replace')}")
        file.seek(offset)
        file.write(LOADER.ljust(length, b"\0"))
    return True


def settle(loader: bytes) -> bytes:
    """Return a loader that searches the kit's folder only. Raises NotMovable for one that is built otherwise."""
    for place in SEARCHED:
        if place + b"\0" not in loader:
            raise NotMovable(f"the loader does not name {place.decode()}")
        loader = loader.replace(place + b"\0", KIT_LIB.ljust(len(place), b"/") + b"\0")
    if OTHERS not in loader or CACHE + b"\0" not in loader:
        raise NotMovable("the loader searches other folders than expected")
    return loader.replace(OTHERS, b"\0/opt/\0/opt/kit/\0").replace(CACHE + b"\0", b"/opt/kit/nocache\0")


def main(folder: Path) -> int:
    own = folder / "lib" / "ld.so"
    body = own.read_bytes()
    if KIT_LIB + b"//" not in body:
        own.write_bytes(settle(body))
    try:
        moved = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink() and p != own and move(p)]
    except NotMovable as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(moved)} programs use {LOADER.decode()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
