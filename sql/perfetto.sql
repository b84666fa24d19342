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
-- One slice per span, of at least a microsecond; n numbers them by process and start.
CREATE OR REPLACE TEMP TABLE _perfetto_spans AS
WITH timed AS (
    SELECT r.pid, s.*, _us(s.start_t) AS start_us, greatest(_us(s.end_t), _us(s.start_t) + 1) AS end_us, _us(s.cut_t) AS cut_us,
           split_part(s.span_id, ':', -1)::BIGINT AS seq
    FROM attempt_spans s JOIN _perfetto_runs r ON r.experiment = s.experiment AND r.run = s.run
)
SELECT row_number() OVER (ORDER BY pid, start_us, end_us DESC, seq) - 1 AS n, * EXCLUDE (span_id, start_t, end_t, cut_t)
FROM timed;

-- step: numbers
SELECT pid, start_us, end_us FROM _perfetto_spans ORDER BY n;

-- step: tracks
-- Every lane is a thread of its run; thread numbers are unique and beyond every process number. Lane 0 bears the marks.
CREATE OR REPLACE TEMP TABLE _perfetto_tracks AS
WITH lanes AS (
    SELECT pid, lane FROM _perfetto_spans JOIN _perfetto_lanes USING (n) GROUP BY pid, lane
    UNION ALL
    SELECT pid, 0 FROM _perfetto_runs
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

-- step: events
-- A row per event, in the order of time; at one moment a slice comes before what lies in it.
WITH placed AS (
    SELECT s.*, t.tid FROM _perfetto_spans s JOIN _perfetto_lanes l USING (n) JOIN _perfetto_tracks t USING (pid, lane)
), lost AS (
    SELECT * FROM placed WHERE lost_by_run IS NOT NULL
), retries AS (  -- the try that replaced a lost one: the first dispatch of the sibling by the run that lost it
    SELECT l.n, min_by(p.n, p.seq) AS next_n
    FROM lost l JOIN _perfetto_spans p
      ON p.experiment = l.experiment AND p.run = l.lost_by_run AND p.group_key = l.group_key
     AND p.generation_index IS NOT DISTINCT FROM l.generation_index
    GROUP BY l.n
), arrows AS (  -- from the last moment of the lost one; none back in time
    SELECT l.n AS id, l.pid, l.tid, greatest(l.start_us, least(l.end_us - 1, p.start_us)) AS ts, p.pid AS next_pid,
           p.tid AS next_tid, p.start_us AS next_ts
    FROM lost l JOIN retries r USING (n) JOIN placed p ON p.n = r.next_n
    WHERE p.start_us >= l.start_us
), marks AS (
    SELECT experiment, run, _us(cut_t) AS ts, 'cut' AS name, step, NULL AS detail FROM snapshots
    UNION ALL
    SELECT experiment, run, _us(published_t), 'published', step, NULL FROM snapshots
    UNION ALL
    SELECT DISTINCT experiment, parent_run, _us(stop_t), 'stop', NULL::BIGINT, NULL FROM restores WHERE parent_run IS NOT NULL
    UNION ALL
    SELECT experiment, run, _us(restore_t), 'restore', snapshot_step, path FROM restores
), lost_so_far AS (
    SELECT experiment, _us(restore_t) AS ts,
           sum(thrown_away_s) OVER earlier AS thrown_away_s, sum(never_saved_s) OVER earlier AS never_saved_s
    FROM cut_time_waste WHERE thrown_away_s IS NOT NULL
    WINDOW earlier AS (PARTITION BY experiment ORDER BY restore_t, run ROWS UNBOUNDED PRECEDING)
    UNION ALL
    SELECT experiment, _us(first_t), 0, 0 FROM _perfetto_experiments
)
SELECT to_json({ph: 'X', name: fate, cat: 'attempt', ts: start_us, dur: end_us - start_us, pid: pid, tid: tid,
                cname: CASE fate WHEN 'kept' THEN 'good' WHEN 'restart' THEN 'terrible' WHEN 'failed' THEN 'bad'
                                 WHEN 'cancelled' THEN 'yellow' WHEN 'superseded' THEN 'olive' WHEN 'discarded' THEN 'black'
                                 WHEN 'open' THEN 'grey' ELSE 'generic_work' END,
                args: {"group": group_key, prompt: prompt_id, sibling: generation_index, attempt: attempt,
                       duration_s: duration_s, end_kind: end_kind, end_is_bound: end_is_bound, lost_by_run: lost_by_run,
                       lost_how: lost_how, thrown_away_s: thrown_away_s, never_saved_s: never_saved_s,
                       weight_version: weight_version}}) AS line, start_us AS ts, 1 AS place, n
FROM placed
UNION ALL
SELECT to_json({ph: 'X', name: 'thrown away', cat: 'lost', ts: start_us, dur: least(cut_us, end_us) - start_us, pid: pid,
                tid: tid, cname: 'bad', args: {seconds: thrown_away_s}}), start_us, 2, n
FROM lost WHERE least(cut_us, end_us) > start_us
UNION ALL
SELECT to_json({ph: 'X', name: 'never saved', cat: 'lost', ts: greatest(cut_us, start_us), dur: end_us - greatest(cut_us, start_us),
                pid: pid, tid: tid, cname: 'terrible', args: {seconds: never_saved_s}}), greatest(cut_us, start_us), 2, n
FROM lost WHERE end_us > greatest(cut_us, start_us)
UNION ALL
SELECT to_json({ph: 's', name: 'tried again', cat: 'retry', id: id, ts: ts, pid: pid, tid: tid}), ts, 3, id FROM arrows
UNION ALL
SELECT to_json({ph: 'f', bp: 'e', name: 'tried again', cat: 'retry', id: id, ts: next_ts, pid: next_pid, tid: next_tid}),
       next_ts, 4, id
FROM arrows
UNION ALL
SELECT to_json({ph: 'i', s: 'p', name: CASE WHEN m.step IS NULL THEN m.name ELSE m.name || ', step ' || m.step END, cat: 'snapshot',
                ts: m.ts, pid: r.pid, tid: t.tid, args: {kind: m.name, step: m.step, path: m.detail}}), m.ts, 5, r.pid
FROM marks m JOIN _perfetto_runs r ON r.experiment = m.experiment AND r.run = m.run
JOIN _perfetto_tracks t ON t.pid = r.pid AND t.lane = 0
WHERE m.ts IS NOT NULL
UNION ALL
SELECT to_json({ph: 'C', name: 'rollouts in flight', ts: ts, pid: pid, args: {running: in_flight}}), ts, 6, pid
FROM (SELECT r.pid, _us(f.t) AS ts, max_by(f.in_flight, f.t) AS in_flight
      FROM in_flight f JOIN _perfetto_runs r ON r.experiment = f.experiment AND r.run = f.run GROUP BY ALL)
UNION ALL
SELECT to_json({ph: 'C', name: 'attempt-seconds lost', ts: ts, pid: pid,
                args: {thrown_away_s: thrown_away_s, never_saved_s: never_saved_s}}), ts, 6, pid
FROM lost_so_far JOIN _perfetto_experiments USING (experiment)
ORDER BY ts, place, n;
