-- Internal: which snapshot each restore took (semantics, section 3).

-- _reports: one row per attempt that a run abandons with reason restart, however many lines say so.
-- generation_index and attempt as the line bears them; group_key NULL where it cannot be told.
CREATE TABLE IF NOT EXISTS _reports(
    experiment VARCHAR, run VARCHAR, group_key VARCHAR, generation_index INTEGER, attempt INTEGER,
    t DOUBLE, first_seq BIGINT, times BIGINT);

CREATE OR REPLACE VIEW _reports_now AS
SELECT experiment, run, group_key, generation_index, attempt, arg_min(t, seq) AS t, min(seq) AS first_seq,
       count(*) AS times
FROM _touched_lines WHERE event = 'attempt_abandoned' AND reason = 'restart'
GROUP BY experiment, run, group_key, generation_index, attempt;

-- _report_spans: one row per report and dispatch of that attempt in the experiment, of whatever run.
CREATE TABLE IF NOT EXISTS _report_spans(
    experiment VARCHAR, run VARCHAR, first_seq BIGINT, span_run VARCHAR, span_seq BIGINT, start_t DOUBLE);

CREATE OR REPLACE VIEW _report_spans_now AS
SELECT r.experiment, r.run, r.first_seq, s.run AS span_run, s.seq AS span_seq, s.start_t
FROM _spans s JOIN _reports r
  ON r.experiment = s.experiment AND r.group_key = s.group_key AND r.attempt = s.attempt
 AND r.generation_index IS NOT DISTINCT FROM s.generation_index
WHERE s.run <> r.run AND r.experiment IN (SELECT experiment FROM _touched);

-- _restores: one row per run that restored; parent_run to contradictions are NULL where no snapshot is known.
-- acted_t: when it first dispatched, published or finished its restore.
CREATE TABLE IF NOT EXISTS _restores(
    experiment VARCHAR, run VARCHAR, restore_seq BIGINT, restore_t DOUBLE, path VARCHAR, tries BIGINT,
    first_dispatch_t DOUBLE, acted BOOLEAN, parent_run VARCHAR, snapshot_seq BIGINT, snapshot_step BIGINT,
    published_t DOUBLE, cut_t DOUBLE, match VARCHAR, contradictions BIGINT);

-- _restore_lines: the one restore of each run, with what its path says.
CREATE OR REPLACE VIEW _restore_lines AS
WITH tried AS (
    SELECT e.experiment, e.run, max(e.seq) FILTER (r.first_dispatch_seq IS NULL OR e.seq < r.first_dispatch_seq) AS seq,
           count(*) AS tries, any_value(r.first_dispatch_t) AS first_dispatch_t
    FROM events e JOIN _runs r ON r.experiment = e.experiment AND r.run = e.run
    WHERE e.event = 'restore_started' AND e.experiment IN (SELECT experiment FROM _touched)
    GROUP BY e.experiment, e.run
), acts AS (
    SELECT e.experiment, e.run, max(e.seq) AS last_seq
    FROM events e SEMI JOIN tried t ON t.experiment = e.experiment AND t.run = e.run
    WHERE e.event IN ('attempt_dispatched', 'snapshot_published', 'restore_finished')
    GROUP BY e.experiment, e.run
)
SELECT t.experiment, t.run, t.seq AS restore_seq, e.t AS restore_t, e.path, t.tries, t.first_dispatch_t,
       coalesce(a.last_seq > t.seq, false) AS acted,
       regexp_extract(e.path, '(?:^|/)snapshot_([0-9]+)/*$', 1) AS number,
       regexp_extract(e.path, '^(?:.*/)?(step_[0-9]+|bootstrap)/(?:.*/)?snapshot_[0-9]+/*$', 1) AS anchor,
       NOT coalesce(regexp_matches(e.path, '[0-9]'), false) AS says_nothing
FROM tried t
JOIN events e ON e.experiment = t.experiment AND e.run = t.run AND e.seq = t.seq AND e.event = 'restore_started'
LEFT JOIN acts a ON a.experiment = t.experiment AND a.run = t.run;

-- _candidates: snapshots that a restore may have taken: what its path names and the newest ten of each run.
-- `match` is how the path names it, NULL for the others; newness: 1 is the latest of all.
CREATE OR REPLACE VIEW _candidates AS
WITH published AS (
    SELECT l.experiment, l.run, l.restore_t, l.path, l.says_nothing,
           try_cast(l.number AS BIGINT) AS number,
           CASE WHEN l.anchor = 'bootstrap' THEN 0 WHEN l.anchor <> '' THEN try_cast(l.anchor[6:] AS BIGINT) END AS anchor,
           e.run AS parent_run, e.seq AS snapshot_seq, e.step, e.t AS published_t, e.cut_time AS cut_t,
           e.path AS published_path, p.first_t AS parent_first_t
    FROM _restore_lines l
    JOIN events e ON e.experiment = l.experiment AND e.run <> l.run AND e.t <= l.restore_t
    JOIN _runs p ON p.experiment = e.experiment AND p.run = e.run
    WHERE e.event = 'snapshot_published'
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY experiment, run, step
                                 ORDER BY published_t, parent_first_t, parent_run, snapshot_seq) AS place_in_step
    FROM published
), ranked AS (
    SELECT *,
           row_number() OVER (newest ROWS UNBOUNDED PRECEDING) AS newness,
           row_number() OVER (PARTITION BY experiment, run, parent_run
                              ORDER BY published_t DESC, snapshot_seq DESC) AS newness_in_run,
           CASE WHEN published_path = path THEN 1
                WHEN anchor IS NOT NULL THEN CASE WHEN step = anchor AND place_in_step = number THEN 2 END
                WHEN number IS NOT NULL THEN CASE WHEN step = number THEN 3 END
                WHEN says_nothing THEN 4 END AS form
    FROM numbered WHERE cut_t IS NOT NULL
    WINDOW newest AS (PARTITION BY experiment, run
                      ORDER BY published_t DESC, parent_first_t DESC, parent_run DESC, snapshot_seq DESC)
), named AS (  -- of those that the strongest form names, the latest
    SELECT experiment, run, arg_min(newness, (form, newness)) AS newness
    FROM ranked WHERE form IS NOT NULL GROUP BY experiment, run
)
SELECT r.experiment, r.run, r.parent_run, r.snapshot_seq, r.step, r.published_t, r.cut_t, r.parent_first_t, r.newness,
       n.newness IS NOT NULL AS path_names_one,
       CASE WHEN n.newness = r.newness THEN CASE form WHEN 1 THEN 'path' WHEN 2 THEN 'anchor' WHEN 3 THEN 'step' ELSE 'latest' END
       END AS match
FROM ranked r LEFT JOIN named n ON n.experiment = r.experiment AND n.run = r.run
WHERE r.newness_in_run <= 10 OR r.newness = n.newness;

-- _restores_now: candidates weighed by evidence.
CREATE OR REPLACE VIEW _restores_now AS
WITH candidates AS MATERIALIZED (SELECT * FROM _candidates),
judged_reports AS (  -- per candidate and report: does it explain it, does it speak against it
    SELECT c.experiment, c.run, c.newness, r.first_seq,
           bool_or(r.start_t <= c.cut_t AND (r.span_run = c.parent_run
                   OR (sr.first_t, r.span_run) < (c.parent_first_t, c.parent_run))) AS explained,
           bool_or(r.start_t > c.cut_t AND r.span_run = c.parent_run) AS only_later
    FROM candidates c
    JOIN _report_spans r ON r.experiment = c.experiment AND r.run = c.run
    JOIN _runs sr ON sr.experiment = r.experiment AND sr.run = r.span_run
    GROUP BY ALL
), weighed AS (
    SELECT c.*, coalesce(j.explains, 0) AS explains, coalesce(j.against, 0) AS reports_against
    FROM candidates c LEFT JOIN (
        SELECT experiment, run, newness, count(*) FILTER (explained) AS explains,
               count(*) FILTER (NOT explained AND only_later) AS against
        FROM judged_reports GROUP BY ALL) j USING (experiment, run, newness)
), favoured AS (
    SELECT *, coalesce(bool_or(match = 'path') OVER r, false)
              OR coalesce(bool_or(match IS NOT NULL AND explains = most) OVER r, false) AS named_stands
    FROM (SELECT *, max(explains) OVER (PARTITION BY experiment, run) AS most FROM weighed)
    WINDOW r AS (PARTITION BY experiment, run)
), pool AS MATERIALIZED (  -- few are left: the named one where it stands, else those that explain most
    SELECT * FROM favoured WHERE CASE WHEN named_stands THEN match IS NOT NULL ELSE explains = most END
), alive AS MATERIALIZED (  -- spans of the candidate's run that nothing had ended at its cut
    SELECT p.experiment, p.run, p.newness, p.parent_run, p.cut_t, s.seq, s.group_key, s.generation_index, s.attempt
    FROM _spans s
    JOIN pool p ON p.experiment = s.experiment AND p.parent_run = s.run
    JOIN _restore_lines l ON l.experiment = p.experiment AND l.run = p.run AND l.acted
    WHERE s.start_t <= p.cut_t AND (s.end_kind IS NULL OR s.end_t > p.cut_t)
), about_alive AS MATERIALIZED (
    SELECT l.experiment, l.run, l.seq, l.t, l.event, l.group_key, l.generation_index, l.attempt
    FROM _touched_lines l SEMI JOIN alive a ON a.experiment = l.experiment AND a.group_key = l.group_key
), left_running AS (  -- nor given up or dispatched again there by a later line of that run
    SELECT a.experiment, a.run, a.newness, a.group_key, a.generation_index, a.attempt
    FROM alive a
    WHERE NOT EXISTS (
        SELECT 1 FROM about_alive o
        WHERE o.experiment = a.experiment AND o.run = a.parent_run AND o.group_key = a.group_key AND o.seq > a.seq
          AND o.generation_index IS NOT DISTINCT FROM a.generation_index AND o.t <= a.cut_t
          AND (o.event = 'attempt_dispatched'
               OR o.event = 'attempt_abandoned' AND o.attempt IS NOT DISTINCT FROM a.attempt))
    GROUP BY ALL
), forgotten AS (
    SELECT a.experiment, a.run, a.newness, count(*) AS against
    FROM left_running a
    WHERE NOT EXISTS (
        SELECT 1 FROM about_alive d
        WHERE d.experiment = a.experiment AND d.run = a.run AND d.group_key = a.group_key
          AND (d.event = 'group_sealed'
               OR d.generation_index IS NOT DISTINCT FROM a.generation_index
                  AND (d.event = 'attempt_dispatched'
                       OR d.event IN ('attempt_sealed', 'attempt_abandoned') AND d.attempt = a.attempt)))
    GROUP BY ALL
), unknown_prompts AS (  -- only where the path names nothing
    SELECT p.experiment, p.run, p.newness, count(*) AS against
    FROM pool p JOIN (
        SELECT experiment, run, coalesce(prompt_id, group_key) AS prompt, min(start_t) AS first_t
        FROM _spans SEMI JOIN (SELECT experiment, parent_run AS run FROM pool WHERE NOT path_names_one) n
            USING (experiment, run)
        GROUP BY ALL) f ON f.experiment = p.experiment AND f.run = p.parent_run AND f.first_t > p.cut_t
    WHERE NOT p.path_names_one
      AND NOT EXISTS (SELECT 1 FROM _spans d WHERE d.experiment = p.experiment AND d.run = p.run
                      AND coalesce(d.prompt_id, d.group_key) = f.prompt)
    GROUP BY ALL
), taken AS (
    SELECT p.*, p.reports_against + coalesce(f.against, 0) + coalesce(u.against, 0) AS contradictions
    FROM pool p LEFT JOIN forgotten f USING (experiment, run, newness)
    LEFT JOIN unknown_prompts u USING (experiment, run, newness)
    QUALIFY row_number() OVER (PARTITION BY p.experiment, p.run ORDER BY contradictions, p.newness) = 1
        AND (p.path_names_one OR p.explains > 0 AND contradictions = 0)
)
SELECT l.experiment, l.run, l.restore_seq, l.restore_t, l.path, l.tries, l.first_dispatch_t, l.acted, t.parent_run,
       t.snapshot_seq, t.step AS snapshot_step, t.published_t, t.cut_t,
       CASE WHEN t.run IS NOT NULL THEN coalesce(t.match, 'evidence') END AS match, t.contradictions
FROM _restore_lines l LEFT JOIN taken t ON t.experiment = l.experiment AND t.run = l.run;

-- _history: one row per restore and ancestor run: R's history is the ancestor's lines up to `upto` (t <= upto).
-- depth 1 is the parent. A restore later than the one it would lead to cannot be an ancestor's: no circles.
CREATE TABLE IF NOT EXISTS _history(experiment VARCHAR, run VARCHAR, ancestor VARCHAR, upto DOUBLE, depth INTEGER);

CREATE OR REPLACE VIEW _history_now AS
WITH RECURSIVE chain AS (
    SELECT experiment, run, parent_run AS ancestor, cut_t AS upto, 1 AS depth, restore_t AS t
    FROM _restores WHERE parent_run IS NOT NULL AND experiment IN (SELECT experiment FROM _touched)
    UNION ALL
    SELECT c.experiment, c.run, r.parent_run, least(c.upto, r.cut_t), c.depth + 1, r.restore_t
    FROM chain c JOIN _restores r ON r.experiment = c.experiment AND r.run = c.ancestor
    WHERE r.parent_run IS NOT NULL AND (r.restore_t, r.run) < (c.t, c.run)
)
SELECT experiment, run, ancestor, upto, depth FROM chain;
