"""The launcher: the one program of ours inside a sandbox. Standard library only, Python >= 3.9, no third party.

Run as ``python3 -I -S program.py [--socket PATH] [--workspace DIR]``, with the ``launcher_*.py`` of this folder beside
it. It connects *out* to a Unix socket on which the host listens, proves that it holds the key that the host gave it
before any agent code ran, starts the scaffold's command once, hands on its output in acknowledged frames, serves tool
calls and files, and reports the exit.

It lives in the agent's trust domain (same uid): the agent can kill or stop it, so what it says is the agent's word.
The agent cannot become it: the key is only in memory, the process is not dumpable (no ptrace, no /proc/<pid>/mem,
environ or fd for the same uid), descriptors are close-on-exec, and children get exactly the environment they were sent.

Limits: 4 MiB of unacknowledged output, then the child's pipes are no longer read and its writes block; 32 tool calls at
a time and 256 known; 64 results and 16 MiB of them kept. Exit status 78: the process could not be made undumpable.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out; the folder is read-only for agents

from launcher_main import main

if __name__ == "__main__":
    sys.exit(main(__file__, sys.argv[1:]))
