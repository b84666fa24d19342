-- Chrome trace JSON of spans, restores and snapshots, for Perfetto; `rtrace_analytics.export.perfetto` runs these steps.
-- Moments are whole microseconds: lanes, parents and children are compared exactly. Times of the trace are kept (epoch).
-- $1: the experiments to show.

-- step: runs
-- One process per run; one more per experiment, after them, for what its restores lost.
CREATE OR REPLACE TEMP TABLE _perfetto_runs AS
SELECT row_number() OVER (ORDER BY experiment, first_t, run) AS pid, experiment, run, first_t, last_t
FROM runs WHERE list_contains($1::VARCHAR[], experiment);

-- step: experiments
CREATE OR REPLACE TEMP TABLE _perfetto_experiments AS
SELECT (SELECT count(*) FROM _perfetto_runs) + row_number() OVER (ORDER BY experiment) AS pid, experiment, min(first_t) AS first_t
FROM _perfetto_runs GROUP BY experiment;

-- step: spans
-- One slice per span, of at least a microsecond, numbered by process and start.
CREATE OR REPLACE TEMP TABLE _perfetto_spans AS
SELECT row_number() OVER () - 1 AS n, *
FROM (SELECT r.pid, _us(s.start_t) AS start_us, greatest(_us(s.end_t), _us(s.start_t) + 1) AS end_us, s.fate,
             s.group_key, s.prompt_id, s.generation_index, s.attempt, split_part(s.span_id, ':', -1)::BIGINT AS seq,
             s.duration_s, s.end_kind, s.weight_version, s.lost_by_run, s.lost_how, _us(s.cut_t) AS cut_us,
             s.thrown_away_s, s.never_saved_s
      FROM attempt_spans s JOIN _perfetto_runs r ON r.experiment = s.experiment AND r.run = s.run
      ORDER BY r.pid, start_us, end_us DESC, seq);

-- step: numbers
SELECT pid, start_us, end_us FROM _perfetto_spans ORDER BY n;

-- step: tracks
-- Every lane is a thread of its run; thread numbers are unique and beyond every process number. Lane 0 bears the marks.
CREATE OR REPLACE TEMP TABLE _perfetto_tracks AS
WITH lanes AS (
    SELECT pid, unnest(range(lanes + 1)) AS lane
    FROM (SELECT r.pid, coalesce(max(l.lane), 0) AS lanes
          FROM _perfetto_runs r LEFT JOIN _perfetto_lanes l USING (pid) GROUP BY r.pid)
)
SELECT pid, lane, row_number() OVER (ORDER BY pid, lane)
                  + (SELECT max(pid) FROM _perfetto_experiments) AS tid
FROM lanes;

-- step: names
WITH processes AS (
    SELECT pid, 'run ' || run || ' of ' || experiment AS name FROM _perfetto_runs
    UNION ALL
    SELECT pid, 'lost to restores: ' || experiment FROM _perfetto_experiments
), threads AS (
    SELECT pid, tid, lane, CASE lane WHEN 0 THEN 'snapshots and restores' ELSE 'lane ' || lane END AS name
    FROM _perfetto_tracks
)
SELECT to_json({ph: 'M', name: 'process_name', pid: pid, args: {name: name}}) AS line, pid, 0 AS place FROM processes
UNION ALL
SELECT to_json({ph: 'M', name: 'process_sort_index', pid: pid, args: {sort_index: pid}}), pid, 1 FROM processes
UNION ALL
SELECT to_json({ph: 'M', name: 'thread_name', pid: pid, tid: tid, args: {name: name}}), pid, 2 * tid FROM threads
UNION ALL
SELECT to_json({ph: 'M', name: 'thread_sort_index', pid: pid, tid: tid, args: {sort_index: lane}}), pid, 2 * tid + 1
FROM threads
ORDER BY pid, place;

-- step: arrows
-- From the last moment of a lost span to the attempt that replaced it, the first dispatch of its sibling by the run that lost
-- it; none back in time.
CREATE OR REPLACE TEMP TABLE _perfetto_arrows AS
WITH lost AS (
    SELECT s.*, r.experiment FROM _perfetto_spans s JOIN _perfetto_runs r USING (pid) WHERE lost_by_run IS NOT NULL
), retries AS (
    SELECT l.n, min_by(p.n, p.seq) AS next_n
    FROM lost l
    JOIN _perfetto_runs r ON r.experiment = l.experiment AND r.run = l.lost_by_run
    JOIN _perfetto_spans p ON p.pid = r.pid AND p.group_key = l.group_key
                          AND p.generation_index IS NOT DISTINCT FROM l.generation_index
    GROUP BY l.n
)
SELECT l.n AS id, greatest(l.start_us, least(l.end_us - 1, p.start_us)) AS ts, p.n AS next_n, p.start_us AS next_ts
FROM lost l JOIN retries r USING (n) JOIN _perfetto_spans p ON p.n = r.next_n
WHERE p.start_us >= l.start_us;

-- step: counts
CREATE OR REPLACE TEMP TABLE _perfetto_counts AS
SELECT r.pid, _us(f.t) AS ts, max_by(f.in_flight, f.t) AS in_flight
FROM in_flight f JOIN _perfetto_runs r ON r.experiment = f.experiment AND r.run = f.run GROUP BY r.pid, _us(f.t);

-- step: marks
CREATE OR REPLACE TEMP TABLE _perfetto_marks AS
WITH marks AS (
    SELECT experiment, run, _us(cut_t) AS ts, 'cut' AS name, step, NULL AS detail FROM snapshots
    UNION ALL
    SELECT experiment, run, _us(published_t), 'published', step, NULL FROM snapshots
    UNION ALL
    SELECT DISTINCT experiment, parent_run, _us(stop_t), 'stop', NULL::BIGINT, NULL FROM restores
    UNION ALL
    SELECT experiment, run, _us(restore_t), 'restore', snapshot_step, path FROM restores
)
SELECT r.pid, m.ts, m.name AS kind, m.name || coalesce(', step ' || m.step, '') AS name, m.step, m.detail,
       row_number() OVER (ORDER BY m.ts, r.pid, m.name, m.step, m.detail) AS n
FROM marks m JOIN _perfetto_runs r ON r.experiment = m.experiment AND r.run = m.run
WHERE m.ts IS NOT NULL;

-- step: losses
CREATE OR REPLACE TEMP TABLE _perfetto_losses AS
WITH so_far AS (
    SELECT experiment, _us(restore_t) AS ts,
           sum(thrown_away_s) OVER earlier AS thrown_away_s, sum(never_saved_s) OVER earlier AS never_saved_s
    FROM cut_time_waste WHERE thrown_away_s IS NOT NULL
    WINDOW earlier AS (PARTITION BY experiment ORDER BY restore_t, run ROWS UNBOUNDED PRECEDING)
    UNION ALL
    SELECT experiment, _us(first_t), 0, 0 FROM _perfetto_experiments
)
SELECT x.pid, s.ts, s.thrown_away_s, s.never_saved_s,
       row_number() OVER (ORDER BY s.ts, x.pid, s.thrown_away_s, s.never_saved_s) AS n
FROM so_far s JOIN _perfetto_experiments x USING (experiment);

-- step: windows
-- Stretches of time that hold some 100,000 spans each, so that no more than that is ever sorted: where each begins.
SELECT min(start_us) AS begins
FROM (SELECT start_us, (row_number() OVER (ORDER BY start_us) - 1) // 100000 AS stretch FROM _perfetto_spans)
GROUP BY stretch ORDER BY begins;

-- step: events
-- A row per event from $1 to before $2, in the order of time; at one moment a slice comes before what lies in it.
WITH placed AS (
    SELECT s.*, t.tid
    FROM _perfetto_spans s JOIN _perfetto_lanes l ON l.n = s.n
    JOIN _perfetto_tracks t ON t.pid = s.pid AND t.lane = l.lane
    WHERE s.start_us >= $1 AND s.start_us < $2
), lost AS (  -- its parts: before the cut, and after it, which may begin in a later stretch
    SELECT s.n, s.pid, t.tid, s.start_us, s.end_us, s.thrown_away_s, s.never_saved_s,
           greatest(s.start_us, least(s.cut_us, s.end_us)) AS cut_us
    FROM _perfetto_spans s JOIN _perfetto_lanes l ON l.n = s.n
    JOIN _perfetto_tracks t ON t.pid = s.pid AND t.lane = l.lane
    WHERE s.cut_us IS NOT NULL
), arrows AS (
    SELECT 's' AS ph, id, ts, id AS n, NULL AS bp, 3 AS place FROM _perfetto_arrows
    UNION ALL
    SELECT 'f', id, next_ts, next_n, 'e', 4 FROM _perfetto_arrows
)
SELECT to_json({ph: 'X', name: fate, cat: 'attempt', ts: start_us, dur: end_us - start_us, pid: pid, tid: tid,
                cname: CASE fate WHEN 'kept' THEN 'good' WHEN 'restart' THEN 'terrible' WHEN 'failed' THEN 'bad'
                                 WHEN 'cancelled' THEN 'yellow' WHEN 'superseded' THEN 'olive'
                                 WHEN 'discarded' THEN 'black' WHEN 'open' THEN 'grey' ELSE 'generic_work' END,
                args: {"group": group_key, prompt: prompt_id, sibling: generation_index, attempt: attempt,
                       duration_s: duration_s, end_kind: end_kind, lost_by_run: lost_by_run, lost_how: lost_how,
                       thrown_away_s: thrown_away_s, never_saved_s: never_saved_s,
                       weight_version: weight_version}}) AS line, start_us AS ts, 1 AS place, n
FROM placed
UNION ALL
SELECT to_json({ph: 'X', name: 'thrown away', cat: 'lost', ts: start_us, dur: cut_us - start_us, pid: pid, tid: tid,
                cname: 'bad', args: {seconds: thrown_away_s}}), start_us, 2, n
FROM lost WHERE cut_us > start_us AND start_us >= $1 AND start_us < $2
UNION ALL
SELECT to_json({ph: 'X', name: 'never saved', cat: 'lost', ts: cut_us, dur: end_us - cut_us, pid: pid, tid: tid,
                cname: 'terrible', args: {seconds: never_saved_s}}), cut_us, 2, n
FROM lost WHERE end_us > cut_us AND cut_us >= $1 AND cut_us < $2
UNION ALL
SELECT to_json({ph: a.ph, bp: a.bp, name: 'tried again', cat: 'retry', id: a.id, ts: a.ts, pid: s.pid, tid: t.tid}), a.ts, a.place, a.id
FROM arrows a JOIN _perfetto_spans s ON s.n = a.n JOIN _perfetto_lanes l ON l.n = a.n
JOIN _perfetto_tracks t ON t.pid = s.pid AND t.lane = l.lane
WHERE a.ts >= $1 AND a.ts < $2
UNION ALL
SELECT to_json({ph: 'i', s: 'p', name: name, cat: 'snapshot', ts: ts, pid: m.pid, tid: t.tid,
                args: {kind: kind, step: step, path: detail}}), ts, 5, n
FROM _perfetto_marks m JOIN _perfetto_tracks t ON t.pid = m.pid AND t.lane = 0
WHERE ts >= $1 AND ts < $2
UNION ALL
SELECT to_json({ph: 'C', name: 'rollouts in flight', ts: ts, pid: pid, args: {running: in_flight}}), ts, 6, pid
FROM _perfetto_counts WHERE ts >= $1 AND ts < $2
UNION ALL
SELECT to_json({ph: 'C', name: 'attempt-seconds lost', ts: ts, pid: pid,
                args: {thrown_away_s: thrown_away_s, never_saved_s: never_saved_s}}), ts, 7, n
FROM _perfetto_losses WHERE ts >= $1 AND ts < $2
ORDER BY ts, place, n;
