"""Plain English words that puzzles are made of."""

WORDS = (
    "acorn", "amber", "anchor", "angel", "apple", "apron", "arrow", "aspen", "badge", "baker", "basil", "basket",
    "beach", "beard", "beetle", "birch", "blanket", "boat", "bonnet", "bottle", "branch", "bread", "bridge",
    "broom", "bucket", "button", "cabin", "cactus", "camel", "candle", "canoe", "carpet", "castle", "cedar",
    "chain", "chair", "cherry", "circle", "cloud", "clover", "coin", "comb", "copper", "coral", "cotton", "crane",
    "crown", "daisy", "desert", "diamond", "dolphin", "donkey", "dragon", "eagle", "earth", "elbow", "ember",
    "engine", "falcon", "feather", "fern", "ferry", "fiddle", "field", "finger", "flame", "flute", "forest",
    "fossil", "fountain", "garden", "garlic", "ginger", "glass", "glove", "grape", "gravel", "guitar", "hammer",
    "harbour", "harvest", "helmet", "heron", "honey", "island", "ivory", "jacket", "jungle", "kettle", "kitten",
    "ladder", "lantern", "lemon", "letter", "lily", "lion", "maple", "marble", "meadow", "melon", "mirror",
    "monkey", "mountain", "needle", "nest", "nettle", "oak", "oasis", "ocean", "olive", "onion", "orange",
    "orchard", "otter", "owl", "paddle", "paper", "parrot", "pebble", "pencil", "pepper", "petal", "piano",
    "pigeon", "pillow", "planet", "plum", "pocket", "pony", "prairie", "puzzle", "quartz", "quilt", "rabbit",
    "raven", "ribbon", "river", "robin", "rocket", "saddle", "salmon", "salt", "sand", "scarf", "shadow", "shell",
    "silver", "sparrow", "spider", "spoon", "star", "stone", "summer", "table", "tiger", "timber", "tomato",
    "towel", "trumpet", "tulip", "tunnel", "turtle", "valley", "velvet", "violin", "wagon", "walnut", "water",
    "whale", "willow", "window", "winter", "wolf", "yarn", "zebra",
)  # fmt: skip
"""In alphabetical order, no two alike."""
