from mimir_bench.seeded_random import SeededRandom


def test_equal_seeds_draw_the_same_and_others_do_not():
    one, same, other = (SeededRandom("a", 1), SeededRandom("a", 1), SeededRandom("a", 2))
    numbers = [one.whole(0, 10**6) for _ in range(20)]
    assert numbers == [same.whole(0, 10**6) for _ in range(20)]
    assert numbers != [other.whole(0, 10**6) for _ in range(20)]


def test_a_number_is_what_it_was_on_every_machine():
    assert [SeededRandom("library", 7).whole(1, 100), SeededRandom("library", 8).whole(1, 100)] == [
        70,
        14,
    ]


def test_both_ends_are_drawn_and_nothing_beyond():
    draw = SeededRandom("ends")
    assert {draw.whole(3, 5) for _ in range(100)} == {3, 4, 5}


def test_some_are_different_ones():
    drawn = SeededRandom("some").some_of("abcdef", 6)
    assert sorted(drawn) == list("abcdef")
    assert drawn != list("abcdef")


def test_a_chance_of_nothing_and_of_everything():
    draw = SeededRandom("chance")
    assert not any(draw.chance(0) for _ in range(50))
    assert all(draw.chance(100) for _ in range(50))
