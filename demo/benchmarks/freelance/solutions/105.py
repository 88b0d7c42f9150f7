"""Round half up, as people do with money."""

import sys
from decimal import ROUND_HALF_UP, Decimal

print(Decimal(sys.stdin.read().strip()).quantize(Decimal(1), ROUND_HALF_UP))
