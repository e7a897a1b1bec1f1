"""A store of a few things: the one that was asked for longest ago has to go first."""


class Shelf:
    def __init__(self, room):
        if room < 1:
            raise ValueError("a shelf has room for one thing at least")
        self.room = room
        self.things = {}
        self.missed = 0

    def get(self, name, default=None):
        """Return a thing, which is then the last one asked for."""
        if name not in self.things:
            self.missed += 1
            return default
        self.things[name] = self.things.pop(name)
        return self.things[name]

    def put(self, name, thing):
        """Put a thing there, in place of one of the same name or the one asked for longest ago."""
        if name in self.things:
            self.things.pop(name)
        elif len(self.things) >= self.room:
            self.things.pop(next(iter(self.things)))
        self.things[name] = thing

    def names(self):
        """Return the names, the one asked for longest ago first."""
        return list(self.things)


def play(room, moves):
    """Return what a shelf has after moves (name,) that get and (name, thing) that put, and how often one was missed."""
    shelf = Shelf(room)
    got = [shelf.get(*move) if len(move) == 1 else shelf.put(*move) for move in moves]
    return shelf.names(), shelf.missed, got
