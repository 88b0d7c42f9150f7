"""Write a number in Roman numerals."""

import sys

SIGNS = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)

left, text = int(sys.stdin.read()), ""
for value, sign in SIGNS:
    count, left = divmod(left, value)
    text += sign * count
print(text)
