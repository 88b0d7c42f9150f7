"""Thirty tasks of shape A: ten kinds of small programs, three of each, with tests that were worked out another way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Reference = Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class Kind:
    title: str
    """With ``{k}`` for the number that the three differ in."""
    description: str
    tag: str
    price: float
    numbers: Sequence[int]
    inputs: Sequence[str]
    program: str
    """Python that solves it; ``K`` is the number."""
    reference: Reference
    """What the output is, for the tests."""


TEXT = ("red green blue\n", "", "a bb ccc dddd eeeee\n", "seven words stand here in two\nlines\n")
NUMBERS = ("4 8 15 16 23 42\n", "7\n", "-3 -1 -2 9 9\n", "10 20 30 40 50 60 70\n")
TABLE = ("a,b,c\n1,2,3\n4,5,6\n", "x,y,z\n10,0,-1\n", "p,q,r\n1,1,1\n2,2,2\n3,3,3\n", "m,n,o\n7,8,9\n")


def _column(text: str, k: int) -> str:
    return str(sum(int(line.split(",")[k - 1]) for line in text.splitlines()[1:]))


def _shift(text: str, k: int) -> str:
    low, high = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return text.translate(str.maketrans(low + high, low[k:] + low[:k] + high[k:] + high[:k])).rstrip("\n")


def _vat(text: str, k: int) -> str:
    cents = sum(round(float(n) * 100) for n in text.split())
    return f"{(cents * (100 + k) + 50) // 100 / 100:.2f}"


def _largest(text: str, k: int) -> str:
    kept = sorted({int(n) for n in text.split()}, reverse=True)
    return str(kept[k - 1]) if len(kept) >= k else "none"


def _base(text: str, k: int) -> str:
    digits, left = "", int(text)
    while left:
        digits, left = "0123456789ABCDEF"[left % k] + digits, left // k
    return digits or "0"


def _windows(text: str, k: int) -> str:
    values = [int(n) for n in text.split()]
    return " ".join(str(sum(values[i : i + k])) for i in range(len(values) - k + 1)) or "none"


KINDS = (
    Kind(
        "Count the words with more than {k} letters", "Read a text and print how many of its words have more than {k} letters.",
        "Text Processing", 120.0, (2, 3, 4), TEXT,
        "import sys\nprint(sum(len(word) > K for word in sys.stdin.read().split()))\n",
        lambda text, k: str(len([w for w in text.split() if w[k:]])),
    ),
    Kind(
        "Add up column {k} of a table", "Read a CSV table with a header and print the sum of column {k}, counted from 1.",
        "Data Processing", 180.0, (1, 2, 3), TABLE,
        "import csv\nimport sys\nrows = list(csv.reader(sys.stdin))[1:]\nprint(sum(int(row[K - 1]) for row in rows))\n", _column,
    ),
    Kind(
        "Shift the letters of a text by {k}", "Print the text with each letter from a to z, in either case, moved {k} places on; z is followed by a.",
        "Algorithms", 150.0, (3, 7, 13), ("Abc xyz\n", "Hello, World!\n", "1 2 3\n", "zZ\n"),
        "import sys\n\n\ndef moved(c):\n    if not c.isascii() or not c.isalpha():\n        return c\n    start = 65 if c.isupper() else 97\n"
        "    return chr((ord(c) - start + K) % 26 + start)\n\n\nprint(''.join(map(moved, sys.stdin.read().rstrip('\\n'))))\n", _shift,
    ),
    Kind(
        "Gross total at {k} per cent tax", "Read net amounts with two decimals, parted by blanks. Print their sum with {k} per cent added to it, with two decimals, halves up.",
        "Accounting", 320.0, (7, 19, 20), ("10.00 5.50\n", "0.05\n", "100.00\n", "19.99 0.01 80.00\n"),
        "import sys\nfrom decimal import ROUND_HALF_UP, Decimal\ntotal = sum(map(Decimal, sys.stdin.read().split()), Decimal(0))\n"
        "print((total * (100 + K) / 100).quantize(Decimal('0.01'), ROUND_HALF_UP))\n", _vat,
    ),
    Kind(
        "Number {k} from the top", "Read whole numbers. Print the one in place {k} if each counts once and the largest is first, or none.",
        "Data Processing", 140.0, (1, 2, 3), NUMBERS,
        "import sys\nkept = sorted(set(map(int, sys.stdin.read().split())))\nprint(kept[-K] if len(kept) >= K else 'none')\n", _largest,
    ),
    Kind(
        "Whole numbers in base {k}", "Read a whole number from 0 on and print it in base {k}, with capital letters.",
        "Algorithms", 110.0, (2, 8, 16), ("0\n", "5\n", "255\n", "1000\n"),
        "value = int(input())\nformats = {2: 'b', 8: 'o', 16: 'X'}\nprint(format(value, formats[K]))\n", _base,
    ),
    Kind(
        "Sums of {k} neighbours", "Read whole numbers and print the sums of each {k} that stand side by side, parted by blanks, or none.",
        "Statistics", 210.0, (2, 3, 4), NUMBERS,
        "import sys\nv = list(map(int, sys.stdin.read().split()))\nsums = [str(sum(v[i:i + K])) for i in range(len(v) - K + 1)]\n"
        "print(' '.join(sums) or 'none')\n", _windows,
    ),
    Kind(
        "Every {k}. line", "Print each line of the text whose number, counted from 1, can be divided by {k}.",
        "Text Processing", 90.0, (2, 3, 5), ("a\nb\nc\nd\ne\n", "one\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "x\ny\n"),
        "import sys\nfor number, line in enumerate(sys.stdin.read().splitlines(), 1):\n    if number % K == 0:\n        print(line)\n",
        lambda text, k: "\n".join(text.splitlines()[k - 1 :: k]),
    ),
    Kind(
        "Cut words to {k} letters", "Print the words of the text, each cut to its first {k} letters, parted by single blanks.",
        "Data Entry", 75.0, (1, 3, 5), TEXT,
        "import sys\nprint(' '.join(word[:K] for word in sys.stdin.read().split()))\n",
        lambda text, k: " ".join(f"{w:.{k}}" for w in text.split()),
    ),
    Kind(
        "Stock below {k}", "Each line has an article and its stock, parted by a semicolon. Print the articles with less than {k} in stock, in alphabetical order, one a line.",
        "Inventory", 260.0, (5, 10, 50), ("nut;4\nbolt;12\nrod;0\n", "tape;100\n", "b;9\na;9\n", "pin;49\nbar;50\nrim;5\n"),
        "import sys\npairs = [line.split(';') for line in sys.stdin.read().splitlines()]\n"
        "for name in sorted(name for name, stock in pairs if int(stock) < K):\n    print(name)\n",
        lambda text, k: "\n".join(sorted(a for a, n in (x.split(";") for x in text.splitlines()) if int(n) < k)),
    ),
)  # fmt: skip
