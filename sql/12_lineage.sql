-- Internal: which snapshot each restore took (semantics, section 3).

-- _reports: one row per attempt that a run abandons with reason restart, however many lines say so.
-- generation_index and attempt as the line bears them; group_key NULL where it cannot be told.
CREATE TABLE IF NOT EXISTS _reports(
    experiment VARCHAR, run VARCHAR, run_no INTEGER, group_key VARCHAR, generation_index INTEGER, attempt INTEGER,
    t DOUBLE, first_seq BIGINT, times BIGINT);

CREATE OR REPLACE VIEW _reports_now AS
SELECT r.experiment, r.run, r.run_no, l.group_key, l.generation_index, l.attempt, arg_min(l.t, l.seq) AS t,
       min(l.seq) AS first_seq, count(*) AS times
FROM _rare l JOIN _runs r USING (run_no)
WHERE l.event = 'attempt_abandoned' AND r.experiment IN (SELECT experiment FROM _touched)
GROUP BY r.experiment, r.run, r.run_no, l.group_key, l.generation_index, l.attempt;

-- _report_spans: one row per report and dispatch of that attempt in another run of the experiment.
CREATE TABLE IF NOT EXISTS _report_spans(run_no INTEGER, first_seq BIGINT, span_no INTEGER, span_seq BIGINT, start_t DOUBLE);

CREATE OR REPLACE VIEW _report_spans_now AS
SELECT p.run_no, p.first_seq, s.run_no AS span_no, s.seq AS span_seq, s.start_t
FROM _spans s
JOIN _runs x ON x.run_no = s.run_no
JOIN (SELECT q.*, r.experiment_no FROM _reports q JOIN _runs r USING (run_no)
      WHERE q.experiment IN (SELECT experiment FROM _touched)) p
  ON p.experiment_no = x.experiment_no AND p.group_key = s.group_key AND p.attempt = s.attempt
 AND p.generation_index IS NOT DISTINCT FROM s.generation_index
WHERE s.run_no <> p.run_no;

-- _restores: one row per run that restored; parent_run to contradictions are NULL where no snapshot is known.
-- acted: it has dispatched, published or finished its restore. tries: restore_started lines.
CREATE TABLE IF NOT EXISTS _restores(
    experiment VARCHAR, run VARCHAR, run_no INTEGER, restore_seq BIGINT, restore_t DOUBLE, path VARCHAR, tries BIGINT,
    first_dispatch_t DOUBLE, acted BOOLEAN, parent_run VARCHAR, parent_no INTEGER, snapshot_seq BIGINT,
    snapshot_step BIGINT, published_t DOUBLE, cut_t DOUBLE, match VARCHAR, contradictions BIGINT);

-- _restore_lines: the one restore of each run, with what its path says.
CREATE OR REPLACE VIEW _restore_lines AS
WITH tried AS (
    SELECT r.experiment, r.run, r.run_no, r.experiment_no, r.first_dispatch_t, count(*) AS tries,
           max(e.seq) FILTER (r.first_dispatch_seq IS NULL OR e.seq < r.first_dispatch_seq) AS seq,
           any_value(r.first_dispatch_seq IS NOT NULL) AS dispatched
    FROM _rare e JOIN _runs r USING (run_no)
    WHERE e.event = 'restore_started' AND r.experiment IN (SELECT experiment FROM _touched)
    GROUP BY ALL
), acts AS (
    SELECT run_no, max(seq) AS last_seq FROM _rare WHERE event IN ('snapshot_published', 'restore_finished') GROUP BY run_no
)
SELECT t.experiment, t.run, t.run_no, t.experiment_no, t.seq AS restore_seq, e.t AS restore_t, e.path, t.tries,
       t.first_dispatch_t, t.dispatched OR coalesce(a.last_seq > t.seq, false) AS acted,
       regexp_extract(e.path, '(?:^|/)snapshot_([0-9]+)/*$', 1) AS number,
       regexp_extract(e.path, '^(?:.*/)?(step_[0-9]+|bootstrap)/(?:.*/)?snapshot_[0-9]+/*$', 1) AS anchor,
       NOT coalesce(regexp_matches(e.path, '[0-9]'), false) AS says_nothing
FROM tried t
JOIN _rare e ON e.run_no = t.run_no AND e.seq = t.seq AND e.event = 'restore_started'
LEFT JOIN acts a ON a.run_no = t.run_no;

-- _published: snapshots in one order, `place`; a later one has a greater place. place_in_step: the same within a step.
CREATE OR REPLACE VIEW _published AS
SELECT r.experiment_no, r.run_no AS parent_no, r.run AS parent_run, e.seq AS snapshot_seq, e.step, e.t AS published_t,
       e.cut_time AS cut_t, e.path, r.first_t AS parent_first_t,
       row_number() OVER (PARTITION BY r.experiment_no ORDER BY e.t, r.first_t, r.run, e.seq) AS place,
       row_number() OVER (PARTITION BY r.experiment_no, e.step ORDER BY e.t, r.first_t, r.run, e.seq) AS place_in_step
FROM _rare e JOIN _runs r USING (run_no)
WHERE e.event = 'snapshot_published' AND r.experiment IN (SELECT experiment FROM _touched);

-- _named: what the path of a restore names, by the form it has; one row per restore whose path names a snapshot.
CREATE OR REPLACE VIEW _named AS
WITH restores AS (
    SELECT *, try_cast(number AS BIGINT) AS k,
           CASE WHEN anchor = 'bootstrap' THEN 0 WHEN anchor <> '' THEN try_cast(anchor[6:] AS BIGINT) END AS n
    FROM _restore_lines
), published AS MATERIALIZED (SELECT * FROM _published),
by_path AS (
    SELECT r.experiment_no, r.run_no, max(p.place) AS place
    FROM restores r JOIN published p ON p.experiment_no = r.experiment_no AND p.path = r.path AND p.parent_no <> r.run_no
    WHERE p.published_t <= r.restore_t AND p.cut_t IS NOT NULL AND r.path <> ''
    GROUP BY ALL
), by_anchor AS (  -- the K-th of other runs: its place in the step, less what the run itself had published before
    SELECT r.experiment_no, r.run_no, p.place, any_value(p.cut_t) AS cut_t
    FROM (SELECT r.*, generate_series AS nth
          FROM (SELECT r.experiment_no, r.run_no, r.restore_t, r.n, r.k, count(o.place) AS owned
                FROM restores r
                LEFT JOIN published o ON o.experiment_no = r.experiment_no AND o.parent_no = r.run_no AND o.step = r.n
                WHERE r.n IS NOT NULL AND r.k IS NOT NULL GROUP BY ALL) r,
          generate_series(r.k, r.k + r.owned)) r
    JOIN published p ON p.experiment_no = r.experiment_no AND p.step = r.n AND p.place_in_step = r.nth
    LEFT JOIN published own ON own.experiment_no = r.experiment_no AND own.step = r.n AND own.parent_no = r.run_no
     AND own.place < p.place
    WHERE p.published_t <= r.restore_t AND p.parent_no <> r.run_no
    GROUP BY r.experiment_no, r.run_no, r.k, p.place, p.place_in_step
    HAVING p.place_in_step - count(own.place) = r.k
), keyed AS (  -- '' is the key of all: for paths that say nothing
    SELECT experiment_no, step::VARCHAR AS key, published_t, max(place) AS place FROM published
    WHERE cut_t IS NOT NULL AND step IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT experiment_no, '', published_t, max(place) FROM published WHERE cut_t IS NOT NULL GROUP BY ALL
), by_key AS (
    SELECT r.experiment_no, r.run_no, r.restore_t, r.key, r.form, p.place
    FROM (SELECT *, CASE WHEN says_nothing THEN '' ELSE k::VARCHAR END AS key,
                 CASE WHEN says_nothing THEN 'latest' ELSE 'step' END AS form FROM restores WHERE n IS NULL) r
    ASOF JOIN keyed p ON p.experiment_no = r.experiment_no AND p.key = r.key AND p.published_t <= r.restore_t
), not_own AS (  -- a run that had published before its restore does not restore that
    SELECT k.experiment_no, k.run_no, k.form, CASE WHEN p.parent_no <> k.run_no THEN k.place ELSE (
               SELECT max(o.place) FROM published o
               WHERE o.experiment_no = k.experiment_no AND o.parent_no <> k.run_no AND o.published_t <= k.restore_t
                 AND o.cut_t IS NOT NULL AND (k.key = '' OR o.step::VARCHAR = k.key)) END AS place
    FROM by_key k JOIN published p ON p.experiment_no = k.experiment_no AND p.place = k.place
), forms AS (
    SELECT run_no, place, 'path' AS match, 1 AS form FROM by_path
    UNION ALL
    SELECT run_no, place, 'anchor', 2 FROM by_anchor WHERE cut_t IS NOT NULL
    UNION ALL
    SELECT run_no, place, form, 3 FROM not_own WHERE place IS NOT NULL
)
SELECT run_no, arg_min(place, form) AS place, arg_min(match, form) AS match FROM forms GROUP BY run_no;

-- _pool: the snapshots between which it is left to choose. Looked at are what the path names and, as far as more could be
-- explained, the newest ten of each other run. Most restores need but the first look: what the path names explains all.
CREATE OR REPLACE VIEW _pool AS
WITH restores AS MATERIALIZED (SELECT *, run_no AS id FROM _restore_lines),
published AS MATERIALIZED (SELECT * FROM _published WHERE cut_t IS NOT NULL),
reported AS MATERIALIZED (  -- other: NULL where it is the report's only dispatch, which then need not be told from others
    SELECT s.run_no AS id, s.first_seq AS report, s.span_no, s.start_t, x.first_t,
           CASE WHEN count(*) OVER (PARTITION BY s.run_no, s.first_seq) > 1 THEN s.first_seq END AS other
    FROM restores r JOIN _report_spans s USING (run_no) JOIN _runs x ON x.run_no = s.span_no
), named AS (
    SELECT r.id, n.match, p.*
    FROM restores r JOIN _named n USING (run_no)
    JOIN published p ON p.experiment_no = r.experiment_no AND p.place = n.place
), look_1 AS MATERIALIZED (
    SELECT n.id, n.place, n.match,
           count(q.id) FILTER (q.other IS NULL) + count(DISTINCT q.other) AS explains
    FROM named n
    LEFT JOIN reported q ON q.id = n.id AND q.start_t <= n.cut_t AND (q.span_no = n.parent_no OR q.first_t < n.parent_first_t)
    GROUP BY n.id, n.place, n.match
), open_1 AS MATERIALIZED (  -- restores of which more reports could be explained
    SELECT r.*, l.place AS named_place, l.explains AS named_explains
    FROM restores r
    JOIN (SELECT id, count(DISTINCT report) AS reports FROM reported GROUP BY id) m USING (id)
    LEFT JOIN look_1 l USING (id)
    WHERE coalesce(l.explains, 0) < m.reports AND l.match IS DISTINCT FROM 'path'
), related AS (  -- the newest ten of each run that dispatched something reported
    SELECT o.id, p.*
    FROM open_1 o
    JOIN (SELECT DISTINCT id, span_no FROM reported) d USING (id)
    JOIN published p ON p.parent_no = d.span_no AND p.published_t <= o.restore_t
    QUALIFY row_number() OVER (PARTITION BY o.id, p.parent_no ORDER BY p.place DESC) <= 10
), look_2 AS MATERIALIZED (
    SELECT c.id, c.place, count(q.id) FILTER (q.other IS NULL) + count(DISTINCT q.other) AS explains
    FROM related c
    LEFT JOIN reported q ON q.id = c.id AND q.start_t <= c.cut_t AND (q.span_no = c.parent_no OR q.first_t < c.parent_first_t)
    GROUP BY c.id, c.place
), open_2 AS (  -- what a run that dispatched none of them must have begun after, and cut after, to explain as many
    SELECT o.id, o.experiment_no, o.run_no, o.restore_t,
           greatest(1, coalesce(b.explains, 0), coalesce(o.named_explains + 1, 0)) AS needed,
           q.begun[greatest(1, coalesce(b.explains, 0), coalesce(o.named_explains + 1, 0))] AS begun_t,
           q.started[greatest(1, coalesce(b.explains, 0), coalesce(o.named_explains + 1, 0))] AS started_t
    FROM open_1 o
    LEFT JOIN (SELECT id, max(explains) AS explains FROM look_2 GROUP BY id) b USING (id)
    JOIN (SELECT id, list(first_t ORDER BY first_t) AS begun, list(start_t ORDER BY start_t) AS started
          FROM (SELECT id, report, min(first_t) AS first_t, min(start_t) AS start_t FROM reported GROUP BY id, report)
          GROUP BY id) q USING (id)
), windows AS (  -- restores of many families at the same times ask the same
    SELECT w.*, p.place
    FROM (SELECT DISTINCT experiment_no, restore_t, begun_t, started_t FROM open_2) w
    JOIN published p ON p.experiment_no = w.experiment_no AND p.published_t <= w.restore_t
     AND p.parent_first_t > w.begun_t AND p.cut_t >= w.started_t
), others AS (
    SELECT o.id, p.*
    FROM open_2 o JOIN windows w USING (experiment_no, restore_t, begun_t, started_t)
    JOIN published p ON p.experiment_no = w.experiment_no AND p.place = w.place
    WHERE p.parent_no <> o.run_no
      AND NOT EXISTS (SELECT 1 FROM reported q WHERE q.id = o.id AND q.span_no = p.parent_no)
    QUALIFY row_number() OVER (PARTITION BY o.id, p.parent_no ORDER BY p.place DESC) <= 10
), look_3 AS (
    SELECT c.id, c.place, count(q.id) FILTER (q.other IS NULL) + count(DISTINCT q.other) AS explains
    FROM others c LEFT JOIN reported q ON q.id = c.id AND q.start_t <= c.cut_t AND q.first_t < c.parent_first_t
    GROUP BY c.id, c.place
), looked AS (
    SELECT id, place, max(explains) AS explains, max(match) AS match
    FROM (SELECT id, place, explains, match FROM look_1
          UNION ALL SELECT id, place, explains, NULL FROM look_2
          UNION ALL SELECT id, place, explains, NULL FROM look_3)
    GROUP BY id, place
), favoured AS (
    SELECT l.*, r.experiment_no, r.run_no, r.acted, max(l.explains) OVER w AS most,
           coalesce(bool_or(l.match IS NOT NULL) OVER w, false) AS path_names_one
    FROM looked l JOIN restores r USING (id) WINDOW w AS (PARTITION BY l.id)
), standing AS (
    SELECT *, coalesce(bool_or(match = 'path' OR match IS NOT NULL AND explains = most) OVER (PARTITION BY id), false)
           AS named_stands
    FROM favoured
), pool AS MATERIALIZED (  -- few are left: the named one where it stands, else those that explain most
    SELECT s.*, p.parent_no, p.parent_run, p.parent_first_t, p.snapshot_seq, p.step, p.published_t, p.cut_t
    FROM standing s JOIN published p ON p.experiment_no = s.experiment_no AND p.place = s.place
    WHERE CASE WHEN named_stands THEN match IS NOT NULL ELSE explains = most END
), against AS (
    SELECT id, place, count(*) AS reports
    FROM (SELECT p.id, p.place, q.report
          FROM pool p JOIN reported q USING (id)
          GROUP BY p.id, p.place, q.report
          HAVING bool_or(q.span_no = p.parent_no AND q.start_t > p.cut_t)
             AND NOT bool_or(q.start_t <= p.cut_t AND (q.span_no = p.parent_no OR q.first_t < p.parent_first_t)))
    GROUP BY id, place
)
SELECT p.experiment_no, p.run_no, p.acted, p.place, p.match, p.explains, coalesce(a.reports, 0) AS reports_against,
       p.parent_no, p.parent_run, p.snapshot_seq, p.step, p.published_t, p.cut_t, p.path_names_one
FROM pool p LEFT JOIN against a USING (id, place);

-- _history: one row per restore and ancestor run: R's history is the ancestor's lines up to `upto` (t <= upto).
-- depth 1 is the parent. A restore later than the one it would lead to cannot be an ancestor's: no circles.
CREATE TABLE IF NOT EXISTS _history(
    experiment VARCHAR, run VARCHAR, run_no INTEGER, ancestor VARCHAR, ancestor_no INTEGER, upto DOUBLE, depth INTEGER);

CREATE OR REPLACE VIEW _history_now AS
WITH RECURSIVE chain AS (
    SELECT experiment, run, run_no, parent_run AS ancestor, parent_no AS ancestor_no, cut_t AS upto, 1 AS depth,
           restore_t AS t
    FROM _restores WHERE parent_no IS NOT NULL AND experiment IN (SELECT experiment FROM _touched)
    UNION ALL
    SELECT c.experiment, c.run, c.run_no, r.parent_run, r.parent_no, least(c.upto, r.cut_t), c.depth + 1, r.restore_t
    FROM chain c JOIN _restores r ON r.run_no = c.ancestor_no
    WHERE r.parent_no IS NOT NULL AND (r.restore_t, r.run) < (c.t, c.run)
)
SELECT experiment, run, run_no, ancestor, ancestor_no, upto, depth FROM chain;

-- _matched_reports: one row per report of a restore with a known cut that has a dispatch in its history: the latest.
CREATE TABLE IF NOT EXISTS _matched_reports(run_no INTEGER, first_seq BIGINT, span_no INTEGER, span_seq BIGINT, start_t DOUBLE);

CREATE OR REPLACE VIEW _matched_reports_now AS
SELECT r.run_no, r.first_seq, r.span_no, r.span_seq, r.start_t
FROM _report_spans r JOIN _touched_runs USING (run_no)
JOIN _history h ON h.run_no = r.run_no AND h.ancestor_no = r.span_no AND r.start_t <= h.upto
QUALIFY row_number() OVER (PARTITION BY r.run_no, r.first_seq ORDER BY h.depth, r.span_seq DESC) = 1;

-- _families_now: one row per run: the run its family of restores comes from (itself, where it has none).
CREATE OR REPLACE VIEW _families_now AS
SELECT r.run_no, r.events, coalesce(h.root_no, r.run_no) AS root_no
FROM _touched_runs r
LEFT JOIN (SELECT run_no, arg_max(ancestor_no, depth) AS root_no FROM _history GROUP BY run_no) h USING (run_no);
