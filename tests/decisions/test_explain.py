"""Explanations: every sentence against the line it names; the PR's example word by word; ids that lie."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_worlds import fill, read

from rtrace_analytics import database
from rtrace_analytics.cli import rtrace
from rtrace_analytics.errors import InputError
from rtrace_analytics.explain import Explanation, explain, sentences

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "data" / "samples"
TRACES = sorted((ROOT / "tests" / "data" / "traces").glob("*.jsonl"))


def load(con, paths: dict[str, Path]) -> None:
    fill(con, {name: read(path) for name, path in paths.items()})
    for number, (name, path) in enumerate(paths.items()):
        con.execute("INSERT INTO trace_files(file_id, path, experiment) VALUES (?, ?, ?)", [number, str(path), name])


def loaded(**paths: Path):
    con = database.connect()
    load(con, paths)
    return con


def line_of(place: tuple[str, int]) -> dict:
    path, line = place
    return json.loads(Path(path).read_text(encoding="utf-8").splitlines()[line - 1])


def test_the_prs_example():
    con = loaded(pr=SAMPLES / "pr-example" / "rollout_trace.jsonl")
    told = [fact.text for fact in explain(con, prompt_id="7").facts]
    assert told[4:12] == [
        "Sibling 2, attempt 0, was dispatched by run a1 at 12.",
        "Nothing in run a1 ends it; the run's latest line is at 43: it ran at least 31 s.",
        "Run a1 published a snapshot cut at 40.",
        "Run b2 restored that snapshot at 60.",
        "Run b2 abandoned the attempt with reason restart at 60.",
        "It cost 40 - 12 = 28 s thrown away, before the cut, and 43 - 40 = 3 s after it never saved: 31 s.",
        "Sibling 2, attempt 1, was dispatched again by run b2 at 63.",
        "It was sealed at 89, after 26 s.",
    ]
    assert told[-1] == "In all: 4 attempts of 1 group ran 88 s; 1 attempt of 31 s lost to 1 stop."
    told = [fact.text for fact in explain(con, restore="b2").facts]
    assert told[-2] == "In all it lost 1 attempt: 28 s thrown away + 3 s never saved = 31 s."


def says_so(text: str, events: list[dict]) -> None:
    """The lines a sentence cites bear its run, its moment and what it says happened."""
    first = events[0]
    for pattern, kind in (
        (r"was dispatched (?:again )?by run (\w+) at ([\d.]+)", "attempt_dispatched"),
        (r"(): sealed at|It was sealed at ([\d.]+)", None),
        (r"Run (\w+) published a snapshot cut at", "snapshot_published"),
        (r"Run (\w+) restored that snapshot at ([\d.]+)", "restore_started"),
        (r"Run (\w+) started to restore at ([\d.]+)", "restore_started"),
        (r"Run (\w+) abandoned the attempt with reason restart at ([\d.]+)", "attempt_abandoned"),
        (r"Run (\w+) abandons it with reason restart at ([\d.]+)", "attempt_abandoned"),
        (r"Run (\w+) dispatched again at ([\d.]+)", "attempt_dispatched"),
        (r"Run (\w+) stopped: its latest line is at ([\d.]+)", None),
        (r"in run (\w+) ends it; the run's latest line is at ([\d.]+)", None),
        (r"sealed by run (\w+) at ([\d.]+)", "group_sealed"),
    ):
        found = re.search(pattern, text)
        if not found:
            continue
        values = [value for value in found.groups() if value]
        if len(values) == 2:
            assert first["run"] == values[0], text
        if values and re.fullmatch(r"[\d.]+", values[-1].rstrip(".")) and "cut at" not in found[0]:
            assert first["t"] == pytest.approx(float(values[-1].rstrip(".")), abs=1e-6), text
        assert kind is None or first["event"] == kind, text
    cut = re.search(r"cut at ([\d.]+)", text)
    if cut and first["event"] == "snapshot_published":
        assert first["cut_time"] == pytest.approx(float(cut[1].rstrip(".")), abs=1e-6)
    sibling = re.search(r"[Ss]ibling (\d+), attempt (\d+)", text)
    if sibling:
        assert (first["generation_index"], first["attempt"]) == (int(sibling[1]), int(sibling[2])), text
    if text.startswith("It cost"):
        assert first["event"] == "attempt_dispatched"
    if " was dispatched" not in text:
        for minuend, subtrahend, result in re.findall(r"([\d.]+) - ([\d.]+) = ([\d.]+) s", text):
            assert float(minuend) - float(subtrahend) == pytest.approx(float(result), abs=2e-6)
            moments = {round(e["t"], 5) for e in events} | {round(e.get("cut_time", 0), 5) for e in events}
            assert {round(float(minuend), 5), round(float(subtrahend), 5)} <= moments, text


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_every_sentence_stands_in_the_file(path):
    con = loaded(x=path)
    lost = con.execute("SELECT prompt_id FROM repeat_losers ORDER BY lost_s DESC LIMIT 5").fetchall() or [("0",)]
    restores = con.execute("SELECT run FROM restores").fetchall()
    checked = 0
    for told in [explain(con, prompt_id=p) for (p,) in lost] + [explain(con, restore=run) for (run,) in restores]:
        for fact in told.facts:
            assert fact.places, fact.text
            says_so(fact.text, [line_of(place) for place in fact.places])
            checked += 1
    assert checked > 10


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_sums_are_those_of_the_views(path):
    con = loaded(x=path)
    for run, lost, thrown_away, never_saved in con.execute(
        "SELECT run, lost_attempts, thrown_away_s, never_saved_s FROM cut_time_waste WHERE cut_t IS NOT NULL"
    ).fetchall():
        told = explain(con, restore=run, limit=3)
        (sum_,) = (fact.text for fact in told.facts if fact.text.startswith("In all it lost"))
        numbers = [float(n.replace(",", "").rstrip(".")) for n in re.findall(r"[\d,.]*\d", sum_)]
        assert numbers == pytest.approx([lost, thrown_away, never_saved, thrown_away + never_saved], abs=1e-5)
        assert sum("dispatched by run" in fact.text for fact in told.facts) == min(lost, 3)


def test_a_report_again_is_told_and_counts_nothing():
    path = ROOT / "tests" / "data" / "faults" / "same-snapshot-restored-twice" / "t.jsonl"
    con = loaded(x=path)
    (prompt,) = con.execute("SELECT prompt_id FROM repeat_losers LIMIT 1").fetchone()
    assert any("this counts nothing" in fact.text for fact in explain(con, prompt_id=prompt).facts)


def test_names_that_lie_are_shown_escaped(tmp_path):
    evil = "\x1b[2J7\r\n- Sibling 9 [x:1]\u202e"
    path = tmp_path / "t.jsonl"
    line = {"t": 1, "run": evil, "event": "attempt_dispatched", "prompt_id": evil, "generation_index": 0, "attempt": 0}
    path.write_text(json.dumps(line) + "\n")
    told = str(explain(loaded(x=path), prompt_id=evil))
    assert len(told.splitlines()) == 4  # title, dispatched, nothing ends it, in all
    assert all(character.isprintable() for character in told.replace("\n", ""))
    assert "\\x1b[2J7\\r\\n" in told


def test_bad_input_is_one_clear_line():
    con = loaded(a=TRACES[0], b=TRACES[0])
    for said, options in {
        "explain takes a prompt or a restore: give one of the two": {},
        "prompt '0' is in experiments 'a', 'b': name one": {"prompt_id": "0"},
        "no prompt 'no such' in experiment 'a': there are '0', '1', '10'": {"prompt_id": "no such", "experiment": "a"},
        "no prompt '0' in experiment 'c'": {"prompt_id": "0", "experiment": "c"},
        "no restore by run 'zz': there are ": {"restore": "zz"},
    }.items():
        with pytest.raises(InputError) as error:
            explain(con, **options)
        assert str(error.value).startswith(said)
        assert "\n" not in str(error.value)


def test_command_line(tmp_path):
    db = tmp_path / "t.db"
    with database.connect(db) as con:
        load(con, {"pr": SAMPLES / "pr-example" / "rollout_trace.jsonl"})
    run = CliRunner().invoke
    text = run(rtrace, ["explain", "--db", str(db), "--prompt", "7"], catch_exceptions=False)
    with database.connect(db, read_only=True) as con:
        told = explain(con, prompt_id="7")
    assert isinstance(told, Explanation)
    assert text.output == f"{told}\n"
    found = json.loads(run(rtrace, ["explain", "--db", str(db), "--restore", "b2", "--format", "json"]).output)
    assert [row["line"] for row in found][:2] == [7, 6]
    assert [tuple(row.values()) for row in found] == list(sentences(_restore_of(db)))


def _restore_of(db: Path) -> Explanation:
    with database.connect(db, read_only=True) as con:
        return explain(con, restore="b2")
