"""Texts and words."""

VOWELS = "aeiou"


def wrap(text, width):
    """Return lines of at most ``width`` characters, broken between words; a longer word has a line of its own."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        lines.append(line)
    return lines


def compress(text):
    """Return runs of letters as letter and length: aaab becomes a3b1."""
    out, start = "", 0
    for i in range(1, len(text) + 1):
        if i == len(text) or text[i] != text[start]:
            out += f"{text[start]}{i - start}"
            start = i
    return out


def expand(packed):
    """Return the text that :func:`compress` made into ``packed``."""
    out, i = "", 0
    while i < len(packed):
        end = i + 1
        while end < len(packed) and packed[end].isdigit():
            end += 1
        out += packed[i] * int(packed[i + 1 : end])
        i = end
    return out


def is_palindrome(text):
    """Return whether the letters read the same backwards, whatever their case."""
    letters = [letter for letter in text.lower() if letter.isalpha()]
    return letters == letters[::-1]


def title(text, small):
    """Return the words with capitals, those in ``small`` without unless first."""
    out = []
    for i, word in enumerate(text.split()):
        if i > 0 and word in small:
            out.append(word)
        else:
            out.append(word[:1].upper() + word[1:])
    return " ".join(out)


def shift(text, by):
    """Return the text with each small letter moved ``by`` places in the alphabet."""
    out = ""
    for letter in text:
        if "a" <= letter <= "z":
            out += chr((ord(letter) - ord("a") + by) % 26 + ord("a"))
        else:
            out += letter
    return out
