"""Count words."""

import sys

print(len(sys.stdin.read().split()))
