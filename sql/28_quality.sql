-- quality: one row per experiment and check; count 0 means nothing was found. Key: experiment, check.
-- `check` is a word of SQL: in a query it is written "check".
-- The checks of the bytes (rejects, pending, salvaged, non_finite_values, replaced_utf8) are told by trace_files.
CREATE OR REPLACE VIEW _known_events AS
SELECT unnest(['attempt_dispatched', 'attempt_sealed', 'attempt_abandoned', 'group_sealed', 'snapshot_published',
               'restore_started', 'restore_finished', 'group_reserved', 'group_admitted', 'group_finalizing',
               'group_finalized', 'group_discarded', 'train_step_started', 'train_step_finished', 'weights_synced', 'trace_dropped']) AS event;

-- _findings: one row per finding; weight is how much it counts.
CREATE OR REPLACE VIEW _findings AS
WITH odd_events AS (
    SELECT experiment, event, count(*) AS lines FROM events GROUP BY experiment, event
), gaps AS (
    SELECT experiment, median(gap) AS usual_s
    FROM (SELECT experiment, cut_t - lag(cut_t) OVER (PARTITION BY experiment, run ORDER BY cut_t) AS gap FROM snapshots)
    GROUP BY experiment
), open_spans AS (
    SELECT experiment, run, count(*) AS spans FROM attempt_spans WHERE fate = 'open' GROUP BY experiment, run
), clocks AS (
    SELECT experiment, run, first_t, last_t,
           min(last_t) FILTER (last_t > 0) OVER (PARTITION BY experiment) AS least_t
    FROM _runs
)
SELECT experiment, 'rejects' AS check_name, rejects AS weight, path AS detail FROM trace_files WHERE rejects > 0
UNION ALL
SELECT experiment, 'pending', pending, path FROM trace_files WHERE pending > 0
UNION ALL
SELECT experiment, 'salvaged', salvaged, path FROM trace_files WHERE salvaged > 0
UNION ALL
SELECT experiment, 'non_finite_values', non_finite_values, path FROM trace_files WHERE non_finite_values > 0
UNION ALL
SELECT experiment, 'replaced_utf8', replaced_utf8, path FROM trace_files WHERE replaced_utf8 > 0
UNION ALL
SELECT experiment, 'unresolved_lines', count(*), event || ' of run ' || run || ' names no group that can be told'
FROM _lines WHERE group_key IS NULL GROUP BY experiment, event, run
UNION ALL
SELECT experiment, 'unknown_events', lines, event FROM odd_events ANTI JOIN _known_events USING (event)
UNION ALL
SELECT experiment, 'clock_steps_back', count(*), 'run ' || run || ': spans that end before they start, taken as 0 s'
FROM _named_spans WHERE end_t < start_t GROUP BY experiment, run
UNION ALL
SELECT experiment, 'clock_steps_back', 1, 'run ' || run || ': its last line is not its latest'
FROM _runs r
WHERE last_t_seq < last_seq
  AND last_t > (SELECT any_value(e.t) FROM events e WHERE e.experiment = r.experiment AND e.run = r.run AND e.seq = r.last_seq)
UNION ALL
SELECT experiment, 'time_unit_suspect', 1, 'run ' || run || ': t begins at ' || first_t || ', seconds are expected'
FROM clocks WHERE first_t >= 1e11 OR first_t / least_t BETWEEN 500 AND 2000 AND first_t > 10000
UNION ALL
SELECT r.experiment, 'seal_without_dispatch', count(*), 'run ' || r.run
FROM _strays l JOIN _runs r USING (run_no)
WHERE l.ends_as = 'sealed'
  AND NOT EXISTS (SELECT 1 FROM _spans s
                  WHERE s.group_key = l.group_key AND s.generation_index IS NOT DISTINCT FROM l.generation_index
                    AND (l.attempt IS NULL OR s.attempt IS NOT DISTINCT FROM l.attempt)
                    AND (s.run_no = l.run_no AND s.seq < l.seq
                         OR s.run_no IN (SELECT h.ancestor_no FROM _history h WHERE h.run_no = l.run_no)))
GROUP BY r.experiment, r.run
UNION ALL
SELECT r.experiment, 'restore_without_cut', 1,
       'run ' || r.run || ' restored ' || coalesce(r.path, 'an unnamed snapshot') || ': no snapshot of this experiment fits'
       || coalesce((SELECT '; experiment ' || min(e.experiment) || ' has one: load both under one --experiment'
                    FROM events e
                    WHERE e.event = 'snapshot_published' AND e.experiment <> r.experiment AND e.t <= r.restore_t
                      AND e.cut_time IS NOT NULL
                      AND (e.path = r.path
                           OR e.step = try_cast(regexp_extract(r.path, 'step_([0-9]+)/', 1) AS BIGINT)
                           OR e.step = try_cast(regexp_extract(r.path, '([0-9]+)/*$', 1) AS BIGINT))), '')
FROM _restores r WHERE r.parent_run IS NULL
UNION ALL
SELECT experiment, 'lineage_contradicted', 1,
       'run ' || run || ' restored a snapshot of run ' || parent_run || ': ' || contradictions || ' things speak against it'
FROM _restores WHERE contradictions > 0
UNION ALL
SELECT experiment, 'same_step_many_runs', 1, 'step ' || step || ' was published by ' || count(DISTINCT run) || ' runs'
FROM snapshots WHERE step IS NOT NULL GROUP BY experiment, step HAVING count(DISTINCT run) > 1
UNION ALL
SELECT experiment, 'failed_restore_tries', tries - 1, 'run ' || run FROM _restores WHERE tries > 1
UNION ALL
SELECT r.experiment, 'parent_went_on', 1, 'run ' || r.parent_run || ' dispatched or published after run ' || r.run || ' had begun'
FROM _restores r JOIN _runs p ON p.experiment = r.experiment AND p.run = r.parent_run
WHERE p.last_act_t > coalesce(r.first_dispatch_t, r.restore_t)
UNION ALL
SELECT x.experiment, 'started_afresh', 1,
       'run ' || x.run || ' began without a restore after run ' || max_by(p.run, p.last_t) || ' had stopped with '
       || max_by(o.spans, p.last_t) || ' attempts open'
FROM _runs x
JOIN _runs p ON p.experiment = x.experiment AND p.last_t <= x.first_t AND p.run <> x.run
JOIN open_spans o ON o.experiment = p.experiment AND o.run = p.run
ANTI JOIN _restores r ON r.experiment = x.experiment AND r.run = x.run
GROUP BY x.experiment, x.run
UNION ALL
SELECT s.experiment, 'branch_or_fork', 1, 'run ' || s.run || ' was discarded with ' || r.publications
       || ' snapshots published: if it is a fork, load it as an experiment of its own'
FROM (SELECT DISTINCT experiment, run FROM _fates WHERE lost_how = 'discarded_branch') s
JOIN _runs r ON r.experiment = s.experiment AND r.run = s.run AND r.publications > 0
UNION ALL
SELECT experiment, 'lost_in_silence', count(*), 'run ' || lost_by_run || ' never said what became of attempts its snapshot held'
FROM attempt_spans WHERE lost_how IN ('silent', 'dropped') GROUP BY experiment, lost_by_run
UNION ALL
SELECT r.experiment, 'no_snapshot_in_run', 1,
       'run ' || r.run || ' dispatched for '
           || coalesce(TRY_CAST(r.last_t - r.first_dispatch_t AS BIGINT)::VARCHAR, (r.last_t - r.first_dispatch_t)::VARCHAR)
           || ' s and published none'
FROM _runs r LEFT JOIN gaps g ON g.experiment = r.experiment
WHERE r.publications = 0 AND r.last_t - r.first_dispatch_t > coalesce(3 * g.usual_s, 600)
UNION ALL
SELECT o.experiment, 'open_at_end', o.spans, 'run ' || o.run || ' ends with them running, and nothing restored says what became of them'
FROM open_spans o
UNION ALL
SELECT experiment, 'conservation', count(*), 'run ' || run || ': the two parts of a lost span do not add up to it'
FROM attempt_spans
WHERE cut_t IS NOT NULL AND abs(thrown_away_s + never_saved_s - duration_s) > 1e-6 * greatest(1, duration_s)
GROUP BY experiment, run
UNION ALL
SELECT r.experiment, 'conservation', abs(r.dispatches - coalesce(s.spans, 0) - coalesce(u.dispatches, 0)),
       'run ' || r.run || ': dispatches that became no span'
FROM _runs r
LEFT JOIN (SELECT experiment, run, count(*) AS spans FROM _named_spans GROUP BY ALL) s USING (experiment, run)
LEFT JOIN (SELECT experiment, run, count(*) AS dispatches FROM _lines
           WHERE group_key IS NULL AND event = 'attempt_dispatched' GROUP BY ALL) u USING (experiment, run)
WHERE r.dispatches <> coalesce(s.spans, 0) + coalesce(u.dispatches, 0);

CREATE OR REPLACE VIEW quality AS
WITH checks AS (
    SELECT unnest(['rejects', 'pending', 'salvaged', 'unresolved_lines', 'unknown_events', 'non_finite_values',
                   'replaced_utf8', 'clock_steps_back', 'time_unit_suspect', 'seal_without_dispatch',
                   'restore_without_cut', 'lineage_contradicted', 'same_step_many_runs', 'failed_restore_tries',
                   'parent_went_on', 'started_afresh', 'branch_or_fork', 'lost_in_silence', 'no_snapshot_in_run',
                   'open_at_end', 'conservation']) AS check_name
), experiments AS (
    SELECT DISTINCT experiment FROM trace_files UNION SELECT DISTINCT experiment FROM _runs
), found AS (
    SELECT experiment, check_name, sum(weight)::BIGINT AS count,
           array_to_string(list(detail ORDER BY detail)[:5], '; ') || CASE WHEN count(*) > 5 THEN '; and ' || (count(*) - 5) || ' more'
           ELSE '' END AS detail
    FROM _findings GROUP BY experiment, check_name
)
SELECT e.experiment, c.check_name AS "check", coalesce(f.count, 0) AS count, f.detail
FROM experiments e CROSS JOIN checks c
LEFT JOIN found f ON f.experiment = e.experiment AND f.check_name = c.check_name;

COMMENT ON VIEW quality IS 'one row per experiment and check: what is odd about its traces';
COMMENT ON COLUMN quality.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN quality."check" IS 'name of the check';
COMMENT ON COLUMN quality.count IS 'how many were found; 0: none. conservation must be 0';
COMMENT ON COLUMN quality.detail IS 'the first five found and how many more; NULL where none';
