"""Release 0.2: which paths carry the load."""

from tally import stats
from tally.records import Record


def request(path: str) -> Record:
    return Record(time="10:00", method="GET", path=path, status=200, ms=10)


LOG = [request(path) for path in ("/b", "/cart", "/", "/cart?id=7", "/", "/a", "/")]


def test_the_busiest_paths_come_first():
    assert stats.busiest(LOG, 2) == [("/", 3), ("/cart", 2)]


def test_equal_paths_stand_in_the_order_of_their_names():
    assert stats.busiest(LOG, 9)[2:] == [("/a", 1), ("/b", 1)]
