"""Contract checks: what is taken from a dead sandbox, and what is only listed."""

import hashlib
import time

from service.domain.artifacts import EntryKind
from service.domain.limits import MIB
from service.testing.sandbox_bench import SMALL, Bench, CheckTable, MemorySink, by_path, delivered, python

COLLECT = CheckTable()


@COLLECT.add()
async def files_are_collected_with_digest_size_and_type(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(
            sandbox,
            "import os; os.makedirs('output/a/b'); open('output/a/b/r.csv', 'w').write('x,y\\n1,2\\n')\n"
            "open('output/p.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(50)); open('output/empty', 'w')\n"
            "open('.home/secret', 'w').write('x'); open('scratch', 'w').write('x')",
        )
        sink = MemorySink()
        deliverable = await delivered(sandbox, sink=sink)
        found = by_path(deliverable)
        assert set(found) == {"output/a", "output/a/b", "output/a/b/r.csv", "output/p.png", "output/empty"}
        entry = found["output/a/b/r.csv"]
        assert entry.sha256 == hashlib.sha256(b"x,y\n1,2\n").hexdigest()
        assert (entry.kind, entry.size_bytes, entry.mime) == (EntryKind.FILE, 8, "text/csv")
        assert found["output/p.png"].mime == "image/png"
        assert found["output/empty"].size_bytes == 0
        assert sink.blobs[str(entry.sha256)] == b"x,y\n1,2\n"
        assert (deliverable.truncated, deliverable.refused, deliverable.problems) == (False, None, 0)


@COLLECT.add()
async def several_roots_and_missing_ones(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(sandbox, "import os; os.makedirs('app/src'); open('app/src/m.py', 'w').write('pass')")
        found = by_path(await delivered(sandbox, "app", "output", "no/such"))
        assert set(found) == {"app/src", "app/src/m.py"}


@COLLECT.add()
async def home_is_never_collected(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        deliverable = await delivered(sandbox, ".home")
        assert deliverable.refused
        assert not deliverable.entries


@COLLECT.add(11, 15)
async def links_and_special_files_are_entries(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(
            sandbox,
            "import os, socket\nos.chdir('output')\nos.symlink('/etc/passwd', 'link'); os.symlink('.', 'loop')\n"
            "os.mkfifo('pipe'); s = socket.socket(socket.AF_UNIX); s.bind('sock'); os.symlink('/etc', 'etc')\n"
            "open('kept', 'w').write('kept')",
        )
        began = time.monotonic()
        found = by_path(await delivered(sandbox))
        assert time.monotonic() - began < 6
        # gVisor keeps pipes and sockets in its own memory: there they are absent, which is as good.
        kinds = {"pipe": EntryKind.FIFO, "sock": EntryKind.SOCKET}
        kinds |= {path.removeprefix("output/"): entry.kind for path, entry in found.items()}
        assert kinds == {
            "link": EntryKind.SYMLINK,
            "loop": EntryKind.SYMLINK,
            "etc": EntryKind.SYMLINK,
            "pipe": EntryKind.FIFO,
            "sock": EntryKind.SOCKET,
            "kept": EntryKind.FILE,
        }
        assert found["output/link"].link_target == "/etc/passwd"
        assert found["output/link"].sha256 is None


@COLLECT.add(12)
async def a_root_that_is_a_link_refuses(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(sandbox, "import os; os.rmdir('output'); os.symlink('/etc', 'output')")
        deliverable = await delivered(sandbox)
        assert deliverable.refused
        assert not deliverable.entries
    async with bench.sandbox() as sandbox:
        await python(sandbox, "import os; os.symlink('output', 'sub'); os.makedirs('output/x')")
        assert (await delivered(sandbox, "sub/x")).refused
    async with bench.sandbox() as sandbox:
        await python(sandbox, "import os; os.rmdir('output'); open('output', 'w')")
        assert (await delivered(sandbox)).refused


@COLLECT.add(13)
async def hard_links_are_bytes_of_their_own(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(
            sandbox,
            "import os\nopen('input', 'wb').write(b'i' * 600)\nfor n in 'abc': os.link('input', 'output/' + n)",
        )
        limits = SMALL.model_copy(update={"deliverable_bytes": 1300})
        deliverable = await delivered(sandbox, limits=limits)
        kinds = [entry.kind for entry in deliverable.entries]
        assert kinds == [EntryKind.FILE, EntryKind.FILE, EntryKind.OVER_LIMIT], "the quota counts every name"
        assert deliverable.total_bytes == 1200
        assert deliverable.truncated


@COLLECT.add(16, 17, 18)
async def odd_names_are_listed_exactly(bench: Bench) -> None:
    names = [
        "-rf",
        " lead",
        "trail.",
        "trail ",
        "a\nb",
        "a\x1b[31mb",
        "a\u202eb",
        "%41",
        "é",
        "e\u0301",
        "README",
        "readme",
    ]
    async with bench.sandbox() as sandbox:
        code = "import sys\nfor n in sys.argv[1:]: open('output/' + n, 'w').write(n)\nopen(b'output/\\xff\\xfe', 'w')"
        await python(sandbox, code, *names)
        found = by_path(await delivered(sandbox))
        expected = {"output/" + n.replace("%", "%25") for n in names} | {"output/%FF%FE"}
        assert set(found) == expected
        assert len({e.sha256 for e in found.values()}) == len(names) + 1


@COLLECT.add(19)
async def deep_and_long_paths_do_not_cost_the_others(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(
            sandbox,
            "import os\nopen('output/' + 'n' * 255, 'w').write('x'); open('output/z', 'w').write('z')\n"
            "os.chdir('output')\nfor i in range(500): os.mkdir('d'); os.chdir('d')\nopen('bottom', 'w').write('b')\n"
            "os.chdir(os.environ.get('WORKSPACE', '/workspace') + '/output')\n"
            "for i in range(40): os.mkdir('w' * 200); os.chdir('w' * 200)",
        )
        deliverable = await delivered(sandbox)
        found = by_path(deliverable)
        assert found["output/" + "n" * 255].kind is EntryKind.FILE
        assert found["output/z"].kind is EntryKind.FILE
        assert sum(e.kind is EntryKind.PATH_TOO_LONG for e in deliverable.entries) == 2
        assert all(len(e.path) < 9000 for e in deliverable.entries)


@COLLECT.add(89)
async def a_sparse_terabyte_is_not_moved(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        size = min(bench.spec.limits.disk_bytes * 1000, 1 << 40)
        done = await sandbox.exec(
            ["python3", "-c", "import sys; open('output/sparse', 'wb').truncate(int(sys.argv[1]))", str(size)],
            env={"PATH": "/usr/bin:/bin"},
        )
        if done.code != 0:  # the limit on a file's size already refused it inside
            await python(sandbox, "open('output/sparse', 'wb').truncate(60 << 20)")
        await python(sandbox, "open('output/small', 'w').write('s')")
        sink, began = MemorySink(), time.monotonic()
        limits = SMALL.model_copy(update={"deliverable_bytes": MIB})
        found = by_path(await delivered(sandbox, limits=limits, sink=sink))
        assert found["output/sparse"].kind is EntryKind.OVER_LIMIT
        assert found["output/sparse"].size_bytes >= 60 << 20
        assert found["output/small"].kind is EntryKind.FILE
        assert sink.moved == 1
        assert time.monotonic() - began < 6


@COLLECT.add()
async def the_number_of_files_is_limited(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(sandbox, "for i in range(50): open(f'output/{i:02}', 'w')")
        limits = SMALL.model_copy(update={"deliverable_files": 20})
        deliverable = await delivered(sandbox, limits=limits)
        assert len(deliverable.files) == 20
        assert len(deliverable.entries) == 50
        assert deliverable.truncated


@COLLECT.add(33)
async def odd_times_are_clamped(bench: Bench) -> None:
    async with bench.sandbox() as sandbox:
        await python(sandbox, "import os; open('output/t', 'w'); os.utime('output/t', (0, -86400 * 365 * 60))")
        assert by_path(await delivered(sandbox))["output/t"].mtime == 0


@COLLECT.add()
async def the_digest_depends_on_content_only(bench: Bench) -> None:
    digests: list[str] = []
    for stamp in (1, 2):
        async with bench.sandbox() as sandbox:
            await python(
                sandbox, f"import os; open('output/t', 'w').write('t'); os.utime('output/t', ({stamp}, {stamp}))"
            )
            digests.append((await delivered(sandbox)).digest())
    assert digests[0] == digests[1]
