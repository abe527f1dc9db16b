#!/usr/bin/env python3
"""Writes quantity_table.inc: random quantities with their values, computed with exact fractions.

    tests/unit/quantity_table.py > tests/unit/quantity_table.inc
"""
import random
from fractions import Fraction

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
LOW, HIGH = -(2**63), 2**63 - 1


def digits(rng, most):
    return "".join(rng.choice("0123456789") for _ in range(rng.randint(0, most)))


def mantissa(rng):
    """Text and value of digits*[.digits*], now and then at the edge of 64 bits."""
    kind = rng.randrange(8)
    if kind == 0:
        text = str(2 ** rng.choice([3, 10, 33, 53, 62, 63, 64]) + rng.randint(-1, 1))
    else:
        text = digits(rng, rng.choice([1, 3, 10, 19, 40]))
        if rng.randrange(2):
            text += "." + digits(rng, rng.choice([1, 3, 10, 30]))
    whole, _, fraction = text.partition(".")
    return text, Fraction(int(whole + fraction or "0"), 10 ** len(fraction))


def suffix(rng):
    kind = rng.randrange(3)
    if kind == 0:
        exponent = rng.randint(-30, 30)
        text = str(exponent) if exponent < 0 else rng.choice(["", "+"]) + str(exponent)
        return rng.choice("eE") + text, Fraction(10) ** exponent
    table, base = (DECIMAL, 10) if kind == 1 else (BINARY, 2)
    text = rng.choice(list(table))
    return text, Fraction(base) ** table[text]


def row(rng):
    sign = rng.choice(["", "", "", "+", "-"])
    text, value = mantissa(rng)
    unit, scale = suffix(rng)
    magnitude = value * scale
    rounded = -(-magnitude.numerator // magnitude.denominator)
    signed = -rounded if sign == "-" else rounded
    value = min(max(signed, LOW), HIGH)
    literal = "INT64_MIN" if value == LOW else str(value)
    return '    {"%s", %s, %s, %s},' % (
        sign + text + unit,
        literal,
        "true" if magnitude.denominator == 1 else "false",
        "true" if value != signed else "false",
    )


def main():
    rng = random.Random(20)
    rows = [row(rng) for _ in range(360)]
    print("/* Written by quantity_table.py: text, value, whole, saturated. */")
    print("/* clang-format off */")
    print("\n".join(dict.fromkeys(r for r in rows if '{"",' not in r)))


if __name__ == "__main__":
    main()
