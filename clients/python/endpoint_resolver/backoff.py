"""How long a client waits before it tries the next server. Pure: randomness is an argument."""

from __future__ import annotations

import random

# After the first failure, and at most, in seconds.
MIN_DELAY = 0.1
MAX_DELAY = 30.0


def delay(failures: int, servers: int, rng: random.Random) -> float:
    """Seconds to wait after `failures` in a row, at least 1, of `servers`, at least 1, that take turns.

    Doubles with each round over all of them, and is shared by the servers of a round: one that is back is tried within `MAX_DELAY`,
    however many there are. From half to the whole of that, so that clients which lost a server together do not come together.
    """
    # Beyond, 2 to that power would only be cut off.
    rounds = min((failures - 1) // servers, 16)
    round_delay = min(MAX_DELAY, MIN_DELAY * (1 << rounds))
    return round_delay / servers * rng.uniform(0.5, 1.0)
