"""How a process of the service starts."""

import subprocess
import sys

SHOWN = """
import gc
from service.__main__ import main
assert main(["scaffold", "lint", "there-is-none.toml"]) == 2
print(gc.isenabled(), gc.get_freeze_count())
"""


def test_what_is_loaded_is_not_searched_for_garbage_and_what_comes_later_is() -> None:
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True, timeout=60)
    enabled, frozen = done.stdout.split()
    assert enabled == "True"
    assert int(frozen) > 10_000
