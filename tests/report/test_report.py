"""The report: its words, its completeness, and that a browser opens it without asking anyone anything."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

import rtrace_analytics as rta
from rtrace_analytics import report
from rtrace_analytics.cli import rtrace
from rtrace_analytics.report import words
from rtrace_analytics.text import share

ROOT = Path(__file__).parents[2]
NASTY = "<script>alert(1)</script>\"'&$x^2$ {{ 7*7 }}\x1b[31m" + "n" * 200
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "samples.duckdb"
    with rta.connect(path) as traces:
        for name in ("pr-example", "two-kills", "stale-drops"):
            traces.load(ROOT / "data/samples" / name)
    return path


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """The PR's example where every name tries to be markup."""
    path = tmp_path_factory.mktemp("nasty") / "t.jsonl"
    rows = [
        json.loads(line) for line in (ROOT / "data/samples/pr-example/rollout_trace.jsonl").read_text().splitlines()
    ]
    rows = [row | {"run": NASTY + row["run"]} | ({"prompt_id": NASTY} if "prompt_id" in row else {}) for row in rows]
    rows.append(rows[7] | {"event": NASTY})
    rows.append(rows[7] | {"generation_index": 5})  # a report of what was never dispatched
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    traces = rta.load(path, experiment=NASTY, labels={NASTY: NASTY})
    return traces


@pytest.fixture(scope="module")
def pages(samples, nasty):
    return {"samples": report.html(rta.connect(samples)), "nasty": report.html(nasty)}


class _Page(HTMLParser):
    """Tags, ids, and what a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            self.ids += [value] if name == "id" else []
            self.fetched += [value] if name in ("src", "href", "srcset", "data", "action", "xlink:href") else []
            assert not name.startswith("on"), "no handlers"


def _told(text):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)))


@pytest.mark.parametrize("source", ["samples", "nasty"])
def test_the_page_is_complete_in_itself(source, pages):
    page = pages[source]
    parsed = _Page(page)
    assert "script" not in parsed.tags and "iframe" not in parsed.tags and "link" in parsed.tags
    assert all(value.startswith(("#", "data:")) for value in parsed.fetched)
    assert "://" not in page.replace("&#34;", "") and "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert len(parsed.ids) == len(set(parsed.ids))
    used = set(re.findall(r"url\(#([^)]+)\)", page)) | {value[1:] for value in parsed.fetched if value.startswith("#")}
    assert used <= set(parsed.ids)
    assert page.count("<svg") == 6


def test_names_stay_names(pages):
    page = pages["nasty"]
    assert "<script" not in page and "alert(1)" in page
    assert "{{ 7*7 }}" in page and " 49 " not in page and "\x1b" not in page


def test_the_figures_are_the_views(samples, pages):
    traces = rta.connect(samples)
    told = _told(pages["samples"])
    for row in traces.cut_time_waste().itertuples():
        for value in (row.thrown_away_s, row.never_saved_s, row.lost_s, row.naive_s):
            assert words.seconds(value) in told
    waste, total = traces.cut_time_waste(), traces.rollout_seconds()["seconds"].sum()
    said = share(waste["lost_s"].sum(), total)
    assert f"{len(waste)} stops threw away {said} of all rollout time" in told
    for row in traces.quality().query("count > 0").itertuples():
        assert row.check.replace("_", " ") in told


def test_it_ends_in_advice_on_the_experiment_that_lost_most(samples, pages):
    told = _told(pages["samples"])
    sentences = rta.connect(samples).advice(experiment="stale-drops")
    assert 1 <= len(sentences) <= 3
    assert "What would have cost less" in told and all(sentence in told for sentence in sentences)
    few = _told(report.html(rta.connect(samples), experiment="pr-example"))
    assert "What would have cost less" not in few  # one stop is too few


def test_one_experiment(samples):
    told = _told(report.html(rta.connect(samples), experiment="pr-example"))
    assert "1 stop threw away 35 % of all rollout time: 28 s before the cut, 3 s after it." in told
    assert "two-kills" not in told
    with pytest.raises(rta.InputError, match="no experiment 'x'"):
        report.html(rta.connect(samples), experiment=["x"])


def test_nothing_at_all(tmp_path):
    with rta.connect(tmp_path / "empty.duckdb") as traces:
        told = _told(report.html(traces))
    assert "No run restored a snapshot: nothing was lost to a stop." in told and "No attempt was dispatched." in told


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(5.0, 3.0), (0.0, 0.0)], "2 stops threw away 8 % of all rollout time: 5 s before the cut, 3 s after it."),
        ([(0.0, 0.0)], "1 stop threw nothing away."),
        ([(None, None)], "1 restore, and the cut of none is known: what was lost cannot be told."),
        ([(1.0, 0.0), (None, None)], "1 stop threw away 1 % of all rollout time: 1 s before the cut, 0 s after it. "
                                     "What 1 more restore lost cannot be told: the cut is not known."),
    ],
)  # fmt: skip
def test_headlines(rows, said):
    restores = [
        {"thrown_away_s": thrown, "never_saved_s": unsaved, "lost_s": None if thrown is None else thrown + unsaved}
        for thrown, unsaved in rows
    ]
    assert words.headline(restores, 100.0) == said


def test_the_same_database_gives_the_same_page(nasty, pages):
    assert report.html(nasty) == pages["nasty"]


def test_command_writes_whole_or_not_at_all(samples, tmp_path):
    out = tmp_path / "report.html"
    done = CliRunner().invoke(rtrace, ["report", "--db", str(samples), "--out", str(out), "--experiment", "pr-example"])
    assert done.exit_code == 0 and "1 stop threw away 35 %" in done.output
    before = out.read_text()
    for arguments, said in (
        (["--out", str(out), "--experiment", "x"], "no experiment 'x'"),
        (["--out", str(tmp_path)], "cannot be written (Is a directory)"),
        (["--out", str(tmp_path / "none" / "r.html")], "cannot be written (No such file or directory)"),
    ):
        failed = CliRunner().invoke(rtrace, ["report", "--db", str(samples), *arguments])
        assert said in str(failed.exception) and isinstance(failed.exception, rta.InputError)
    assert out.read_text() == before and [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_label_command(samples, tmp_path):
    db = tmp_path / "copy.duckdb"
    shutil.copy(samples, db)
    done = CliRunner().invoke(rtrace, ["label", "pr-example", "kind=x", "interval_s=40", "--db", str(db)])
    assert done.output == "2 labels set on 1 experiment\n"
    assert len(rta.connect(db).labels()) == 2
    table = tmp_path / "l.csv"
    table.write_text("experiment,key,value\ntwo-kills,kind,y\nstale-drops,kind,y\npr-example,kind,z\n")
    assert CliRunner().invoke(rtrace, ["label", "--csv", str(table), "--db", str(db)]).exit_code == 0
    assert rta.connect(db).compare(by="kind")["kind"].tolist() == ["y", "y", "z"]
    for arguments, said in (
        (["pr-example", "kind"], "label 'kind' is not of the form KEY=VALUE"),
        (["pr-example", "k=1", "k=2"], "label 'k' is given twice"),
        (["pr-example"], "no label for 'pr-example'"),
        (["x", "k=1"], "no experiment 'x' to label"),
        ([], "nothing to label"),
    ):
        failed = CliRunner().invoke(rtrace, ["label", *arguments, "--db", str(db)])
        assert said in str(failed.exception)
    gone = CliRunner().invoke(rtrace, ["label", "a", "k=1", "--db", str(tmp_path / "none.duckdb")])
    assert "no database" in str(gone.exception) and not (tmp_path / "none.duckdb").exists()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_opens_it_without_a_complaint_or_a_request(pages, tmp_path, width):
    out, shot, log = tmp_path / "report.html", tmp_path / "shot.png", tmp_path / "net.json"
    for page in pages.values():
        out.write_text(page, encoding="utf-8")
        done = subprocess.run(
            [
                *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
                "--host-resolver-rules=MAP * ~NOTFOUND",
                *("--enable-logging=stderr", f"--user-data-dir={tmp_path / 'user'}", f"--log-net-log={log}"),
                *(f"--window-size={width},2000", f"--screenshot={shot}", out.as_uri()),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert shot.stat().st_size > 20_000, done.stderr
        assert "CONSOLE" not in done.stderr, done.stderr
        assert _asked(log) == []


def _asked(log):
    """What the page asked of others; the browser's own requests have no page behind them."""
    given = [event.get("params") or {} for event in json.loads(log.read_text())["events"]]
    urls = [params["url"] for params in given if params.get("initiator", "not an origin") != "not an origin"]
    return [url for url in urls if not url.startswith(("file:", "data:"))]
