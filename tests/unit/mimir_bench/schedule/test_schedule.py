import pytest

from mimir_bench.schedule.bounds import barriers, first_come, lower_bound
from mimir_bench.schedule.graph_families import BEHIND, FAMILIES, HEAVY, LONGEST, TimedTask, make


@pytest.mark.parametrize("family", FAMILIES)
def test_a_graph_follows_from_its_seed_and_lists_every_job_behind_those_it_needs(family: str):
    graph = make(family, 7)

    assert graph == make(family, 7)
    assert all(needed < at for at, job in enumerate(graph) for needed in job.needs)
    assert all(0 < job.seconds <= LONGEST for job in graph)


def test_durations_of_the_heavy_tail_are_mostly_short_and_sometimes_long():
    seconds = sorted(job.seconds for seed in range(1, 6) for job in make(HEAVY, seed))

    assert seconds[len(seconds) // 2] < 5
    assert seconds[-1] > 20


def test_no_schedule_is_shorter_than_the_critical_path_nor_than_the_work_shared_out():
    graph = [
        TimedTask(seconds=2.0),
        TimedTask(seconds=3.0, needs=(0,)),
        TimedTask(seconds=1.0),
        TimedTask(seconds=4.0),
    ]

    assert lower_bound(graph, 10) == 5.0
    assert lower_bound(graph, 1) == 10.0


def test_first_come_and_barrier_schedules_have_their_known_lengths():
    graph = make(BEHIND, 1)
    assert lower_bound(graph, 10) == 20.0
    assert first_come(graph, 10) == 28.0

    uneven = [TimedTask(seconds=5.0), TimedTask(seconds=1.0), TimedTask(seconds=5.0, needs=(1,))]
    assert lower_bound(uneven, 2) == first_come(uneven, 2) == 6.0
    assert barriers(uneven, 2) == 10.0
