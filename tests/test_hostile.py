"""Hostile input: arguments that make no sense, and names in a trace that are code to someone."""

import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest

import rtrace_analytics as rta
from rtrace_analytics import cli, fleet, report
from rtrace_analytics.plots import style
from rtrace_analytics.text import clean
from rtrace_analytics.views import TABLES, VIEWS

EXAMPLE = Path(__file__).parent.parent / "data/samples/pr-example/rollout_trace.jsonl"
RTRACE = str(Path(sys.executable).with_name("rtrace"))


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["rtrace", *map(str, arguments)])
    with pytest.raises(SystemExit) as done:
        cli.main()
    out, err = capsys.readouterr()
    return done.value.code, out, err


def everything(folder):
    return sorted((str(path), path.stat().st_size) for path in folder.rglob("*"))


# Arguments


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(EXAMPLE.parent, folder / "pr")
    rta.connect(folder / "db").load(folder / "pr")
    (folder / "file").write_text("x")
    (folder / "latin.csv").write_bytes("experiment,key,value\npr,k,\xe9\n".encode("latin-1"))
    whole = (folder / "db").read_bytes()
    (folder / "corrupt").write_bytes(whole[:12288] + b"\xff" * 20_000 + whole[32288:])
    (folder / "short").write_bytes(whole[: len(whole) // 2])
    duckdb.connect(folder / "foreign").execute("CREATE TABLE x(i INT)").close()
    os.mkfifo(folder / "fifo")
    return folder


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("waste ''", "no file or folder ''"),
        ("waste fifo", "'fifo' is neither a file nor a folder"),
        ("waste '['", "no file matches '['"),
        ("waste pr --db ''", "'' is empty: give a path"),
        ("waste pr --db fifo", "'fifo' is a device or pipe: name a file"),
        ("waste pr --db /dev/null", "'/dev/null' is a device or pipe"),
        ("waste pr --db pr/rollout_trace.jsonl", "'pr/rollout_trace.jsonl' is not a DuckDB database"),
        ("waste pr --db corrupt", "Corrupt database file"),
        ("waste pr --db short", "'short' is not a DuckDB database that can be opened"),
        ("waste pr --db none/x", "make it first"),
        ("waste --db db --label a=b", "--label is for loading: give PATH... too"),
        ("waste --db db --rename a=b", "--rename is for loading"),
        ("waste --db db --experiment-from x", "--experiment-from is for loading"),
        ("waste --db db --experiment ''", "no experiment '': there are 'pr'"),
        ("load pr --db new --experiment ''", "the experiment name is empty"),
        ("load db --db new", "is no rollout trace"),
        ("load fifo --db new", "'fifo' is neither"),
        ("show 'runs; DROP TABLE events' --db db", "no view or table 'runs; DROP TABLE events'"),
        ('show runs --db db --run "\'; DROP TABLE events; --"', 'no run "\'; DROP TABLE events; --"'),
        ("show runs --db db --format xml", "'xml' is not one of"),
        ("sql ';' --db db", "one query at a time: 0 were given"),
        ("sql \"SELECT error(chr(10) || chr(27) || 'b')\" --db db", "\\x1bb"),
        ("sql \"FROM query('DROP TABLE events')\" --db db", "Parser Error"),
        ("forget '' --db db", "no experiment ''"),
        ("export --db db --parquet ''", "'' is empty: give a path"),
        ("export --db db --parquet file/x", "'file/x' is not a folder"),
        ("export --db db --parquet pr", "'pr' holds 'rollout_trace.jsonl'"),
        ("export --db db --parquet new --views ,", "no view or table ''"),
        ("export --db db --perfetto new --views runs", "--views 'runs' is for --parquet"),
        ("export --db db --perfetto fifo", "'fifo' cannot be written (a device or pipe)"),
        ("export --db db --perfetto file/x", "'file/x' cannot be written (Not a directory)"),
        ("simulate --out ''", "'' is empty: give a path"),
        ("simulate --out new --groups 99999999999999999999", "10,000,000 at most"),
        ("simulate --out new --groups 10000000 --siblings 2", "10,000,000 rollouts at most"),
        ("simulate --out new --snapshot-interval nan", "--snapshot-interval is nan: give seconds"),
        ("simulate --out new --tail inf", "--tail is inf"),
        ("follow none --db new", "no file or folder 'none'"),
        ("follow pr --db new --every nan", "--every nan: give seconds from 0.05"),
        ("follow pr --db new --every inf", "--every inf: give seconds from 0.05"),
        ("check fifo", "'fifo' is neither"),
        ("check db", "is no rollout trace"),
        ("report --db db --out ''", "'' is empty: give a path"),
        ("report --db db --out pr", "'pr'"),
        ("report --db db --out fifo", "'fifo' cannot be written (a device or pipe)"),
        ("report --db foreign --out new", "not of rtrace"),
        ("label --csv latin.csv --db db", "'latin.csv' cannot be read"),
        ("label --csv pr --db db", "Is a directory"),
        ("label pr k= --db db", "'k=' is not of the form"),
        ('explain --db db --prompt "\'; DROP TABLE events; --"', 'no prompt "\'; DROP TABLE events; --"'),
        ("explain --db db --restore b2 --limit -1", "-1 is not in the range"),
        ("whatif --db db --interval -1", "interval -1.0 must be a positive number"),
        ("whatif --db db --interval nan", "interval nan"),
        ("whatif --db db --interval 1e-300", "interval 1e-300 s: give 1e-06 s or more"),
        ("whatif --db db --interval 10 --stops inf", "stop inf"),
        ("whatif --db db --interval 10 --publish-lag nan", "publish lag nan"),
        ("fleet pr --out new --memory lots", "memory 'lots' is not a size: give one like 2GB"),
        ("fleet pr --out new --memory=-1", "memory '-1' is not a size"),
        ("doctor x", "unexpected extra argument"),
        ("''", "No such command ''"),
    ],
)
def test_nonsense_is_one_line_and_changes_nothing(monkeypatch, capsys, place, command, told):
    monkeypatch.chdir(place)
    before = everything(place)
    code, out, err = call(monkeypatch, capsys, *shlex.split(command))
    assert (code, out) == (2, "")
    assert err.startswith("rtrace: ") and err.count("\n") == 1 and told in err
    assert everything(place) == before and (place / "fifo").is_fifo()


@pytest.mark.parametrize(
    "command", ["waste {}", "load pr --db {}", "sql {} --db db", "load pr --db new --experiment {}"]
)
def test_arguments_that_are_no_text(monkeypatch, capsys, place, command):
    monkeypatch.chdir(place)
    before = everything(place)
    code, out, err = call(monkeypatch, capsys, *(part.format("\udcff") for part in command.split()))
    assert (code, out, err) == (2, "", "rtrace: argument '\\udcff' is not UTF-8: rename what it names\n")
    assert everything(place) == before


@pytest.mark.parametrize("arguments", ["", "--help", "waste {0}/pr --strict", "check {0}/pr", "show runs --db {0}/db"])
def test_a_reader_that_leaves_is_no_error(place, arguments):
    command = f"{shlex.quote(RTRACE)} {arguments.format(shlex.quote(str(place)))} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_output_and_one_without_the_letters(place, tmp_path):
    done = subprocess.run(["bash", "-c", f"{shlex.quote(RTRACE)} show runs --db '{place}/db' >&-"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "t.jsonl").write_text(EXAMPLE.read_text().replace('"a1"', '"\u00e9"'))
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([RTRACE, "waste", tmp_path / "t.jsonl"], capture_output=True, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, b"") and b"of step 4 of \\xe9, cut at 40" in done.stdout


# Names

NAMES = {
    "sql": "'; DROP TABLE events; --",
    "markup": "<script>alert(1)</script>",
    "handler": '"><img src=x onerror=alert(1)>',
    "shell": "$(touch made)`touch made`",
    "up": "../../etc/x",
    "absolute": "/etc/x",
    "long": "n" * 5000,
    "dot": ".",
    "dots": "..",
    "nul": "a\0b",
    "colour": "\x1b[31m",
    "title": "\x1b]0;title\x07",
    "c1": "\x9b31m",
    "turned": "\u202eevil",
    "lines": "a\nb\tc\rd",
    "formula": "$\\frac{",
    "sheet": "=1+1",
    "template": "{{ 7*7 }}{0}%s",
    "quotes": "\"'\\",
    "space": " ",
    "null": "null",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def db(home):
    """The example once for every name, which stands wherever a text can."""
    with rta.connect(home / "db") as traces:
        for key, name in NAMES.items():
            lines = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
            for line in lines:
                line |= {"run": name + line["run"], name: name}
                line |= {"prompt_id": name, "group_id": name} if "prompt_id" in line else {}
                line |= {"path": name + line["path"]} if "path" in line else {}
            lines.append(lines[-1] | {"event": name})
            lines.append(lines[-2] | {"event": "attempt_dispatched", "prompt_id": "p", "group_id": "p", "attempt": 0})
            lines.append(lines[-1] | {"event": "attempt_abandoned", "reason": name})
            (home / "in" / key).mkdir(parents=True)
            path = home / "in" / key / "rollout_trace.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            traces.load(path, experiment=name, labels={NAMES["sql"]: name})
    return home / "db"


@pytest.fixture(scope="module")
def traces(db):
    return rta.connect(db)


@pytest.fixture
def rtrace(monkeypatch, capsys, home, db):
    """A command in a folder of its own, where nothing may be made but what is asked for."""
    monkeypatch.chdir(home)
    before = set(home.parent.rglob("*"))

    def run(*arguments, made=()):
        code, out, err = call(monkeypatch, capsys, *arguments)
        assert code == 0, err
        new = set(home.parent.rglob("*")) - before
        assert {path.relative_to(home).parts[0] for path in new} <= set(made)
        return out

    return run


def test_figures_and_names_are_kept(traces):
    waste = traces.cut_time_waste().set_index("experiment")
    assert set(waste.index) == set(NAMES.values())
    for name in NAMES.values():
        row = waste.loc[name]
        told = (row.run, row.parent_run, row.thrown_away_s, row.never_saved_s, row.naive_s, row.lost_attempts)
        assert told == (name + "b2", name + "a1", 28, 3, 28, 1)
        events = traces.events(experiment=name)
        assert set(events["prompt_id"].dropna()) == {name, "p"} and name in set(events["event"])
        assert name in set(events["reason"].dropna()) and set(events["path"].dropna()) == {
            name + "/ckpt/snapshot_000004"
        }
        assert all(json.loads(extra)[name] == name for extra in events["extra"])
    assert {(row.key, row.value) for row in traces.labels().itertuples()} == {
        (NAMES["sql"], name) for name in NAMES.values()
    }


def test_a_terminal_sees_no_control(rtrace, db, traces):
    told = [rtrace("show", view, "--db", db) for view in [*VIEWS, *TABLES]]
    told += [rtrace("waste", "--db", db), rtrace("sql", "SELECT run, path FROM restores", "--db", db)]
    for name in NAMES.values():
        told += [str(traces.explain(prompt_id=name)), str(traces.explain(restore=name + "b2"))]
        assert "40 - 12 = 28 s thrown away" in told[-1] and "40 - 12 = 28 s thrown away" in told[-2]
    assert all(text.replace("\n", "").isprintable() for text in told)


@pytest.mark.parametrize("key", ["title", "turned", "lines"])
def test_check_and_follow(monkeypatch, capsys, home, db, rtrace, key):
    monkeypatch.setattr(threading.Event, "wait", lambda *_: True)
    out = rtrace("follow", home / "in" / key, "--db", "followed", "--experiment", NAMES[key], made=["followed"])
    assert "28 s thrown away" in out and out.replace("\n", "").isprintable()
    code, out, err = call(monkeypatch, capsys, "check", home / "in" / key)
    assert (code, err) == (0, "") and "unknown_events" in out and out.replace("\n", "").isprintable()
    (home / "followed").unlink()


def test_programs_get_names_as_they_are(rtrace, db):
    runs = {name + run for name in NAMES.values() for run in ("a1", "b2")}
    as_json = rtrace("show", "runs", "--db", db, "--format", "json")
    assert {row["run"] for row in json.loads(as_json)} == runs and as_json.replace("\n", "").isprintable()
    as_csv = rtrace("show", "runs", "--db", db, "--format", "csv")
    assert {row["run"] for row in csv.DictReader(io.StringIO(as_csv, newline=""))} == runs
    told = json.loads(rtrace("explain", "--prompt", "../../etc/x", "--db", db, "--format", "json"))
    assert "dispatched by run ../../etc/xa1 at 10" in told[0]["text"]


def test_exports_stay_in_their_place(rtrace, home, db):
    rtrace("export", "--db", db, "--parquet", "lake", "--perfetto", "p.json", made=["lake", "p.json"])
    with duckdb.connect() as con:
        rows = con.execute(f"SELECT experiment, run, thrown_away_s FROM '{home}/lake/cut_time_waste/*/*.parquet'")
        assert set(rows.fetchall()) == {(name, name + "b2", 28) for name in NAMES.values()}
    assert len(list((home / "lake/runs").iterdir())) == len(NAMES)
    events = json.loads((home / "p.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names >= {f"run {name}{run} of {name}" for name in NAMES.values() for run in ("a1", "b2")}


@pytest.mark.parametrize("key", ["up", "nul", "long"])
def test_a_task_of_a_fleet(tmp_path, home, db, key):
    path = home / "in" / key / "rollout_trace.jsonl"
    entry = fleet.export_one(fleet.Task(NAMES[key], (str(path),), "f", str(tmp_path / "out"), "1GB"))
    assert entry["experiment"] == NAMES[key]
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert all(Path(file["path"]).parts[0] == file["view"] for file in entry["files"])


SHOWN = ("timeline", "in_flight", "waste", "fates", "lineage", "durations")


class _Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.handlers = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_pages_run_nothing(rtrace, home, db, traces):
    several = [NAMES[key] for key in ("markup", "handler", "title", "turned", "template")]
    page = report.html(traces, experiment=several)
    for text in (page, traces._repr_html_()):
        tags = _Tags(text)
        assert not tags.tags & {"script", "img", "iframe"} and not tags.handlers
        assert not set(text) & set("\0\x07\x1b\x9b\r\u202e")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "{{ 7*7 }}" in page


@pytest.mark.parametrize("key", ["formula", "markup", "title"])
def test_pictures_show_names_as_they_are(traces, key):
    import matplotlib.text

    name = NAMES[key]
    with style.off_screen():
        drawn = {kind: getattr(traces.plot, kind)(experiment=name) for kind in SHOWN}
        drawn["whatif"] = traces.plot.whatif([10.0], experiment=name)
        drawn["compare"] = traces.plot.compare(by=NAMES["sql"])
    for kind, ax in drawn.items():
        ax.figure.draw_without_rendering()
        texts = [text.get_text() for text in ax.figure.findobj(matplotlib.text.Text)]
        assert all(text.replace("\n", "").isprintable() for text in texts), kind
        if kind in ("timeline", "fates", "lineage"):
            assert any(clean(name)[:6] in text for text in texts), kind


def test_names_in_what_if_compare_and_a_mix(traces, db):
    for name in NAMES.values():
        assert traces.whatif_interval([10], experiment=name)["experiment"].unique().tolist() == [name]
    compared = traces.compare(by=NAMES["sql"])
    assert set(zip(compared["experiment"], compared[NAMES["sql"]], strict=True)) == {(n, n) for n in NAMES.values()}
    with rta.mix({NAMES["sql"]: db, NAMES["quotes"]: db}, prefix=True) as mixed:
        wanted = {f"{source}/{name}" for source in (NAMES["sql"], NAMES["quotes"]) for name in NAMES.values()}
        assert set(mixed.cut_time_waste()["experiment"]) == wanted
        assert set(mixed.cut_time_waste()["thrown_away_s"]) == {28}


@pytest.mark.parametrize("far", [1e300, 1.7e308])
def test_clocks_that_cannot_be_right_are_not_replayed(tmp_path, far):
    lines = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
    lines[3]["t"], lines[4]["t"] = far, -far
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(rta.InputError, match="clocks that cannot be right"):
        rta.load(tmp_path, experiment="x").whatif_interval([10.0])
