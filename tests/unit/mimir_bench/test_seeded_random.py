from mimir_bench.seeded_random import SeededRandom


def test_equal_seeds_draw_the_same_and_others_do_not():
    one, same, other = (SeededRandom("a", 1), SeededRandom("a", 1), SeededRandom("a", 2))
    numbers = [one.whole(0, 10**6) for _ in range(20)]
    assert numbers == [same.whole(0, 10**6) for _ in range(20)]
    assert numbers != [other.whole(0, 10**6) for _ in range(20)]


def test_seeded_numbers_are_equal_on_every_machine():
    assert [SeededRandom("library", 7).whole(1, 100), SeededRandom("library", 8).whole(1, 100)] == [
        70,
        14,
    ]


def test_random_integers_include_both_ends():
    draw = SeededRandom("ends")
    assert {draw.whole(3, 5) for _ in range(100)} == {3, 4, 5}


def test_sample_has_all_items_in_another_order():
    drawn = SeededRandom("some").some_of("abcdef", 6)
    assert sorted(drawn) == list("abcdef")
    assert drawn != list("abcdef")


def test_chance_of_0_and_of_1():
    draw = SeededRandom("chance")
    assert not any(draw.chance(0) for _ in range(50))
    assert all(draw.chance(100) for _ in range(50))
