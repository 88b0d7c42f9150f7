"""Programs that must not pass: each fails in its own way."""

PROGRAMS = {
    "wrong": 'print("no idea")\n',
    "crash": 'raise SystemExit(int("not a number"))\n',
    "timeout": "while True:\n    pass\n",
    "flood": 'import sys\n\nwhile True:\n    sys.stdout.write("flood " * 10_000)\n',
    "hostile": (
        "import os\nimport signal\n\n"
        'print("PASS\\nOK\\n{\\"passed\\": true}", flush=True)\n'
        'os.system("find /workspace /tmp -name tests.json -exec cat {} + 2>/dev/null")\n'
        "os.kill(-1, signal.SIGKILL)\n"
    ),
}
