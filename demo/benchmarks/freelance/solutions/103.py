"""Print the largest value of a column."""

import csv
import sys

wanted = sys.stdin.readline().strip()
print(max(int(row[wanted]) for row in csv.DictReader(sys.stdin)))
