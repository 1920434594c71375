"""Readers of qaic-runner's standard output and traces, written after the contract's text: the rate is the last word of
a line, the columns of the device table are found by their names, spans of a trace nest and do not go back."""
import json
from collections import defaultdict

SLACK = 1e-6  # Of microseconds: stamps are nanoseconds, and a begin and a duration are added.


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
    """{metric: {"avg", "min", "max", "std"}}: columns by name, rows until one that is not one."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    start = next(i for i, row in enumerate(rows) if row[0] == "Metric")
    columns = {name.lower(): place for place, name in enumerate(rows[start])}
    table = {}
    for row in rows[start + 1:]:
        if len(row) != len(columns):
            break
        table[row[0]] = {name: float(row[columns[name]]) for name in ("avg", "min", "max", "std")}
    return table


def check_nesting(spans, what):
    """Spans (begin, end): of any two one lies inside of the other, or they do not meet."""
    open_ends = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ends and open_ends[-1] <= begin + SLACK:
            open_ends.pop()
        if open_ends and end > open_ends[-1] + SLACK:
            raise ValueError(f"{what}: {begin} to {end} goes beyond {open_ends[-1]}")
        open_ends.append(end)


def read_trace(text):
    """The bars of a Chrome trace, {"name", "ts", "dur", "tid", "args"}; ValueError where spans of a track or of a job
    overlap without nesting, where a track goes back, or where a pair is not closed."""
    events = json.loads(text)["traceEvents"]
    named = {event["tid"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    tracks, jobs, pairs, last = defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(float)
    for event in events:
        if event["ph"] == "M":
            continue
        begin = event["ts"]
        if begin < 0:
            raise ValueError(f"before the beginning: {event}")
        if event["ph"] == "X":
            track = (event["pid"], event["tid"])
            if event["tid"] not in named or event["dur"] < 0 or begin < last[track]:
                raise ValueError(f"on no track, or going back: {event}")
            last[track] = begin
            tracks[track].append((begin, begin + event["dur"]))
            jobs[event["args"]["job"]].append((begin, begin + event["dur"]))
        elif event["ph"] in "be":
            opened = pairs[event["pid"], event["cat"], event["id"]]
            if event["ph"] == "b":
                if opened and begin < opened[-1][1]:
                    raise ValueError(f"going back: {event}")
                opened.append((event["name"], begin))
                continue
            name, since = opened.pop()
            if name != event["name"] or begin < since:
                raise ValueError(f"no end of {name}: {event}")
            jobs[event["id"]].append((since, begin))
        else:
            raise ValueError(f"an unknown event: {event}")
    unclosed = [key for key, opened in pairs.items() if opened]
    if unclosed:
        raise ValueError(f"not closed: {unclosed}")
    for track, spans in tracks.items():
        check_nesting(spans, f"track {track}")
    for job, spans in jobs.items():
        # Bars of one job on several cores are the same span.
        check_nesting(set(spans), f"job {job}")
    return [event for event in events if event["ph"] == "X"]
