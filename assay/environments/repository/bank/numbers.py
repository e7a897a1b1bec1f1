"""Whole numbers."""

ROMAN = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X")]
ROMAN += [(9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def gcd(a, b):
    """Return the greatest common divisor."""
    while b:
        a, b = b, a % b
    return abs(a)


def is_prime(n):
    """Return whether a number is prime."""
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


def factors(n):
    """Return the prime factors of a number above 0, the smallest first."""
    if n < 1:
        raise ValueError("only numbers above 0 have factors")
    out, d = [], 2
    while d * d <= n:
        while n % d == 0:
            out.append(d)
            n //= d
        d += 1
    if n > 1:
        out.append(n)
    return out


def roman(n):
    """Return a number from 1 to 3999 in Roman numerals."""
    if not 1 <= n <= 3999:
        raise ValueError("only 1 to 3999 have Roman numerals")
    out = ""
    for value, letters in ROMAN:
        while n >= value:
            out += letters
            n -= value
    return out


def digits(n, base):
    """Return the digits of a number in a base, the most significant first."""
    if n == 0:
        return [0]
    out = []
    while n > 0:
        out.append(n % base)
        n //= base
    return out[::-1]


def collatz(n):
    """Return how many steps of n/2 and 3n+1 lead to 1."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
