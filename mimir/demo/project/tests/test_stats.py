from tally import stats
from tally.records import Record


def request(status: int, ms: int) -> Record:
    return Record(time="10:00", method="GET", path="/", status=status, ms=ms)


LOG = [request(200, 10), request(404, 20), request(503, 60)]


def test_every_request_counts():
    assert stats.requests(LOG) == 3


def test_only_the_failures_of_the_service_are_errors():
    assert stats.errors(LOG) == 1


def test_the_mean_of_nothing_is_nothing():
    assert stats.mean_ms(LOG) == 30
    assert stats.mean_ms([]) == 0
