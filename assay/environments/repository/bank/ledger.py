"""Accounts in a ledger: amounts in cents, and what was booked."""


def fee(amount, rate, least):
    """Return the fee of an amount: ``rate`` per mille, at least ``least``, nothing of nothing."""
    if amount <= 0:
        return 0
    return max(least, amount * rate // 1000)


def balance(bookings, account):
    """Return what is in an account after bookings (from, to, amount)."""
    total = 0
    for source, target, amount in bookings:
        if source == account:
            total -= amount
        if target == account:
            total += amount
    return total


def overdrawn(bookings, limit):
    """Return the accounts that are below ``-limit`` at any time, sorted."""
    now, found = {}, set()
    for source, target, amount in bookings:
        now[source] = now.get(source, 0) - amount
        now[target] = now.get(target, 0) + amount
        if now[source] < -limit:
            found.add(source)
    return sorted(found)


def split(amount, shares):
    """Return an amount in parts by whole shares; what is left over goes to the first, a cent each."""
    whole = sum(shares)
    if whole <= 0:
        raise ValueError("there must be a share")
    parts = [amount * share // whole for share in shares]
    left = amount - sum(parts)
    for i in range(left):
        parts[i] += 1
    return parts


def largest(bookings, n):
    """Return the ``n`` largest bookings, those of equal amount in their order."""
    return sorted(bookings, key=lambda booking: -booking[2])[:n]


def written(cents):
    """Return cents as a text such as -12.05."""
    sign = "-" if cents < 0 else ""
    cents = abs(cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"
