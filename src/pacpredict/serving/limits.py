"""How much one request, one address and all of them together may ask of the server."""

from dataclasses import dataclass

from pacpredict.exceptions import InvalidInput, TooManyRows


@dataclass(frozen=True)
class Limits:
    """The defaults let a client label ten thousand rows of a wide table in one go, and nobody keep others waiting.

    Sizes are in bytes. All are of one process; several workers have them each.
    """

    # Of one request.
    url_bytes: int = 8 * 2**10  # as common proxies; the paths of the server have some 50
    head_bytes: int = 32 * 2**10  # URL and headers, counted as HTTP/2 does: each header 32 more than its text
    body_bytes: int = 8 * 2**20
    rows: int = 10_000
    pixel_bytes: int = (
        128 * 2**20
    )  # of images once they are decoded: a file of black has a thousandth of them

    # How long one may keep a connection without using it.
    head_seconds: float = 10.0  # for URL and headers to arrive, or the rest of a body that was refused
    body_seconds: float = 30.0  # for a body to arrive
    unread_seconds: float = 30.0  # for a reply to be taken
    idle_seconds: float = (
        75.0  # between requests; balancers keep connections for 60 and must not be the second
    )

    # At a time. Ordinary systems let a process have 1,024 descriptors, and ledger and listening need theirs.
    connections: int = 512
    connections_per_address: int = 128  # one address cannot shut out the others
    pipelined: int = 16  # requests that were sent before the reply to the one before them
    held_bodies: int = 32  # of the largest size, and of pixels, that are being read or answered
    waiting: int = 2_000  # requests that were read and not answered; more would only wait longer

    # A body up to here is refused for want of room only if its images are, and does not queue behind larger ones.
    small_bytes: int = 64 * 2**10

    def __post_init__(self) -> None:
        for name in ("body_bytes", "rows", "idle_seconds", "connections", "connections_per_address"):
            if getattr(self, name) <= 0:
                what = name.replace("_", " ")
                raise InvalidInput(f"with a limit of {getattr(self, name)} {what} nobody could be answered")

    def check_rows(self, n_rows: int, pixel_bytes: int = 0) -> None:
        """Refuse too many rows, or too many images that have so many bytes of pixels each, before one is decoded."""
        most = min(self.rows, max(1, self.pixel_bytes // pixel_bytes)) if pixel_bytes else self.rows
        if n_rows > most:
            raise TooManyRows(f"{n_rows:,} rows in one request are too many; send at most {most:,}")
