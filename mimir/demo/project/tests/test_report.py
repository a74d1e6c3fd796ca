from tally import report


def test_columns_are_aligned():
    table = report.text(("what", "value"), [("requests", "12"), ("errors", "1")])
    assert table.splitlines() == [
        "what      value",
        "requests     12",
        "errors        1",
    ]
