"""Add up the lines of an invoice."""

import sys
from decimal import Decimal

lines = (line.split() for line in sys.stdin if line.strip())
print(f"{sum((int(quantity) * Decimal(price) for quantity, price in lines), Decimal(0)):.2f}")
