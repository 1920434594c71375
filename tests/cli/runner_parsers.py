"""Two readers of qaic-runner's standard output, written after the contract's text: the rate is the last word of
a line, the columns of the device table are found by their names."""


def read_stats(text):
    """{"count", "us", "batch", "rate"} of the line after ---- Stats ----."""
    lines = [line.strip() for line in text.splitlines()]
    line = lines[lines.index("---- Stats ----") + 1]
    words = line.split()
    named = dict(zip(words[:-1], words[1:]))
    duration = named["TotalDuration"]
    if not duration.endswith("us"):
        raise ValueError(f"no duration in us: {line}")
    return {"count": int(named["InferenceCnt"]), "us": int(duration[:-2]), "batch": int(named["BatchSize"]),
            "rate": float(words[-1])}


def read_device_table(text):
    """{metric: {"avg", "min", "max", "std"}}: columns by name, rows until one that is none."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    start = next(i for i, row in enumerate(rows) if row[0] == "Metric")
    columns = {name.lower(): place for place, name in enumerate(rows[start])}
    table = {}
    for row in rows[start + 1:]:
        if len(row) != len(columns):
            break
        table[row[0]] = {name: float(row[columns[name]]) for name in ("avg", "min", "max", "std")}
    return table
