-- From lines to events. Python runs the steps it needs; the duckdb command line runs the whole file, after sql/[0-9]*.sql:
--   (echo "SET VARIABLE trace_files = 'logs/*.jsonl';"; cat sql/[0-9]*.sql sql/load.sql) | duckdb -bail traces.duckdb
-- An experiment is then the folder a file lies in (above a launch folder exp_001), or the variable `experiment`.
-- Without Python a line that is not exactly one whole event goes to `rejects` as it is: `rtrace load` takes it apart. So
-- does a line that read_csv cannot read, and the lines after it in its file are then numbered one too low.
-- step: files
BEGIN;
INSERT OR IGNORE INTO _about  -- as in database.py, so that Python opens what this makes
SELECT 'format', '2'
WHERE CASE WHEN (SELECT count(*) FROM trace_files) = 0 THEN true
           ELSE error('this database holds traces already: name a new one, or bring it up to date with rtrace load') END;
INSERT INTO trace_files(file_id, path, experiment)
SELECT row_number() OVER (ORDER BY file), file,
       coalesce(getvariable('experiment')::VARCHAR,
                CASE WHEN regexp_full_match(folders[-1], 'exp_\d+') AND len(folders) > 1 THEN folders[-2] ELSE folders[-1] END,
                'default')
FROM (SELECT file, string_split(parse_dirpath(file), '/') AS folders FROM glob(getvariable('trace_files')));
-- step: lines
-- The rows of a table keep the order in which read_csv finds the lines; where they begin it does not tell, and the number
-- of a line orders as well.
CREATE OR REPLACE TEMP TABLE _csv_lines AS
SELECT filename, text
FROM read_csv(getvariable('trace_files'), columns = {'text': 'VARCHAR'}, header = false, auto_detect = false,
              delim = chr(1), quote = '', escape = '', strict_mode = false, store_rejects = true, filename = true,
              max_line_size = 100000000);
CREATE OR REPLACE TEMP VIEW _raw_lines AS
SELECT experiment, file_id, 1 + _csv_lines.rowid - first_row AS line, line AS byte_offset, text
FROM _csv_lines JOIN (SELECT filename, min(rowid) AS first_row FROM _csv_lines GROUP BY filename) USING (filename)
JOIN trace_files ON path = filename;
-- step: parsed
CREATE OR REPLACE TEMP VIEW _parsed AS
SELECT *, _known_fields(whole) AS j FROM (SELECT *, CASE WHEN json_valid(text) THEN text END AS whole FROM _raw_lines);
-- step: typed
-- One row per line. `sound`: it has a finite t, a run and an event, and its numbers are finite and written as they are read.
CREATE OR REPLACE TEMP VIEW _typed AS
WITH typed AS (
    SELECT *, j.run, j.event, j.group_id, j.prompt_id, j.reason, j.path,
           TRY_CAST(j.t::VARCHAR AS DOUBLE) AS t,
           TRY_CAST(j.generation_index::VARCHAR AS INTEGER) AS generation_index,
           TRY_CAST(j.attempt::VARCHAR AS INTEGER) AS attempt,
           TRY_CAST(j.step::VARCHAR AS BIGINT) AS step,
           TRY_CAST(j.cut_time::VARCHAR AS DOUBLE) AS cut_time,
           TRY_CAST(j.weight_version::VARCHAR AS BIGINT) AS weight_version,
           TRY_CAST(j.tokens::VARCHAR AS BIGINT) AS tokens,
           TRY_CAST(j.reward::VARCHAR AS DOUBLE) AS reward
    FROM _parsed)
SELECT *, coalesce(
           isfinite(t) AND run IS NOT NULL AND event IS NOT NULL
           AND coalesce(isfinite(cut_time), true) AND coalesce(isfinite(reward), true)
           AND coalesce(generation_index::VARCHAR = j.generation_index::VARCHAR, true)
           AND coalesce(attempt::VARCHAR = j.attempt::VARCHAR, true)
           AND coalesce(step::VARCHAR = j.step::VARCHAR, true)
           AND coalesce(weight_version::VARCHAR = j.weight_version::VARCHAR, true)
           AND coalesce(tokens::VARCHAR = j.tokens::VARCHAR, true), false) AS sound
FROM typed;
-- step: read
-- `intact` is the proof that the line is one valid JSON object that bears nothing but known fields, each once and of its
-- own type: as many keys as known values, two quotes for each key and for each text, no nested value, no comma too many.
CREATE OR REPLACE TEMP VIEW _read AS
WITH counted AS (
    SELECT *, (run IS NOT NULL)::INTEGER + (event IS NOT NULL)::INTEGER + (group_id IS NOT NULL)::INTEGER
              + (prompt_id IS NOT NULL)::INTEGER + (reason IS NOT NULL)::INTEGER + (path IS NOT NULL)::INTEGER AS texts,
           (t IS NOT NULL)::INTEGER + (generation_index IS NOT NULL)::INTEGER + (attempt IS NOT NULL)::INTEGER
              + (step IS NOT NULL)::INTEGER + (cut_time IS NOT NULL)::INTEGER + (weight_version IS NOT NULL)::INTEGER
              + (tokens IS NOT NULL)::INTEGER + (reward IS NOT NULL)::INTEGER AS numbers
    FROM _typed)
SELECT *, coalesce(
           sound AND text LIKE '{%' AND text NOT LIKE '%{%{%' AND NOT contains(text, '[')
           AND texts + numbers = len(json_keys(whole))
           AND 4 * texts + 2 * numbers = strlen(text) - strlen(replace(text, '"', ''))
           AND regexp_matches(text, '["0-9]\}\s*$'), false) AS intact
FROM counted;
-- step: events
INSERT INTO events
SELECT experiment, run, byte_offset, t, event, group_id, prompt_id, generation_index, attempt, reason, step, cut_time,
       path, weight_version, tokens, reward, NULL, file_id, line
FROM _read WHERE intact;
-- step: rest
CREATE OR REPLACE TEMP TABLE _rest AS
SELECT experiment, file_id, line, byte_offset, text FROM _read WHERE NOT intact;
-- step: odd
-- Of the rest, the lines that are one valid object all the same: with unknown fields, nulls, numbers as ids, "2" for 2.
-- DuckDB's JSON takes NaN and a comma before a bracket, which JSON does not: such lines are left to Python.
CREATE OR REPLACE TEMP VIEW _odd AS
WITH valid AS (
    SELECT *, CASE WHEN text LIKE '{%' AND json_valid(text) AND NOT regexp_matches(text, ',\s*[\]}]') THEN text END AS whole
    FROM _rest),
parsed AS (
    SELECT *, json_keys(whole) AS keys,
           json_transform(whole, '{"t": "JSON", "run": "JSON", "event": "JSON", "group_id": "JSON", "prompt_id": "JSON",
               "generation_index": "JSON", "attempt": "JSON", "reason": "JSON", "step": "JSON", "cut_time": "JSON",
               "path": "JSON", "weight_version": "JSON", "tokens": "JSON", "reward": "JSON"}') AS j
    FROM valid),
typed AS (
    SELECT *, TRY_CAST(j.t::VARCHAR AS DOUBLE) AS t, _word(j.run) AS run, _word(j.event) AS event,
           _word(j.group_id) AS group_id, _word(j.prompt_id) AS prompt_id,
           TRY_CAST(_whole(j.generation_index) AS INTEGER) AS generation_index,
           TRY_CAST(_whole(j.attempt) AS INTEGER) AS attempt, _word(j.reason) AS reason,
           TRY_CAST(_whole(j.step) AS BIGINT) AS step, TRY_CAST(j.cut_time::VARCHAR AS DOUBLE) AS cut_time,
           _word(j.path) AS path, TRY_CAST(_whole(j.weight_version) AS BIGINT) AS weight_version,
           TRY_CAST(_whole(j.tokens) AS BIGINT) AS tokens, TRY_CAST(j.reward::VARCHAR AS DOUBLE) AS reward,
           json_merge_patch(whole, '{"t": null, "run": null, "event": null, "group_id": null, "prompt_id": null,
               "generation_index": null, "attempt": null, "reason": null, "step": null, "cut_time": null, "path": null,
               "weight_version": null, "tokens": null, "reward": null}') AS others
    FROM parsed),
counted AS (
    SELECT *, json_keys(others) AS other_keys,
           (t IS NOT NULL)::INTEGER + (run IS NOT NULL)::INTEGER + (event IS NOT NULL)::INTEGER
           + (group_id IS NOT NULL)::INTEGER + (prompt_id IS NOT NULL)::INTEGER + (generation_index IS NOT NULL)::INTEGER
           + (attempt IS NOT NULL)::INTEGER + (reason IS NOT NULL)::INTEGER + (step IS NOT NULL)::INTEGER
           + (cut_time IS NOT NULL)::INTEGER + (path IS NOT NULL)::INTEGER + (weight_version IS NOT NULL)::INTEGER
           + (tokens IS NOT NULL)::INTEGER + (reward IS NOT NULL)::INTEGER AS values
    FROM typed)
SELECT *, CASE WHEN len(other_keys) > 0 THEN others END AS extra,
       coalesce(isfinite(t) AND run IS NOT NULL AND event IS NOT NULL
           AND CASE WHEN len(keys) = values + len(other_keys) THEN len(other_keys) = len(list_distinct(other_keys))
                    ELSE len(keys) = len(list_distinct(keys)) END
           AND NOT regexp_matches(others::VARCHAR, '(?i)[:\[,]-?(nan|inf)')
           AND (j.group_id IS NULL) = (group_id IS NULL) AND (j.prompt_id IS NULL) = (prompt_id IS NULL)
           AND (j.generation_index IS NULL) = (generation_index IS NULL) AND (j.attempt IS NULL) = (attempt IS NULL)
           AND (j.reason IS NULL) = (reason IS NULL) AND (j.step IS NULL) = (step IS NULL)
           AND (j.path IS NULL) = (path IS NULL) AND (j.weight_version IS NULL) = (weight_version IS NULL)
           AND (j.tokens IS NULL) = (tokens IS NULL)
           AND (j.cut_time IS NULL OR coalesce(isfinite(cut_time), false))
           AND (j.reward IS NULL OR coalesce(isfinite(reward), false)), false) AS whole_event
FROM counted;
-- step: odd_events
INSERT INTO events
SELECT experiment, run, byte_offset, t, event, group_id, prompt_id, generation_index, attempt, reason, step, cut_time,
       path, weight_version, tokens, reward, extra, file_id, line
FROM _odd WHERE whole_event;
-- step: rejects
INSERT INTO rejects
SELECT file_id, line, NULL, 'not exactly one event: rtrace load takes it apart', left(text, 1000)
FROM _odd WHERE NOT whole_event AND trim(text, chr(32) || chr(9) || chr(13) || chr(0)) <> '';
INSERT INTO rejects
SELECT trace_files.file_id, e.line, e.line_byte_position, 'cannot be read: rtrace load takes it apart', left(e.csv_line, 1000)
FROM reject_errors AS e JOIN reject_scans AS s USING (scan_id, file_id) JOIN trace_files ON path = s.file_path;
-- step: counts
UPDATE trace_files SET events = n, lines = last, identity = first
FROM (SELECT file_id, count(*) AS n, max(line) AS last, arg_min(md5(trim(text, chr(32) || chr(9) || chr(13))), line) AS first
      FROM events JOIN _raw_lines USING (file_id, line) GROUP BY file_id) AS c
WHERE c.file_id = trace_files.file_id;
UPDATE trace_files SET rejects = (SELECT count(*) FROM rejects WHERE rejects.file_id = trace_files.file_id);
-- step: order
-- A run that is spread over files takes them in the order of the t of its first line in each.
INSERT INTO _run_files
SELECT experiment, run, file_id, first_t,
       row_number() OVER (PARTITION BY experiment, run ORDER BY first_t, identity, file_id) - 1
FROM (SELECT experiment, run, file_id, arg_min(t, seq) AS first_t FROM events GROUP BY experiment, run, file_id)
JOIN trace_files USING (experiment, file_id);
UPDATE events SET seq = (rank << 44) | seq
FROM (SELECT * FROM _run_files WHERE rank > 0) AS spread
WHERE (spread.run, spread.file_id) = (events.run, events.file_id);
-- step: touched
INSERT INTO _touched SELECT DISTINCT experiment FROM trace_files;
-- step: derive_clear
DELETE FROM _held_groups WHERE experiment_no IN (SELECT experiment_no FROM _touched_runs);
DELETE FROM _rare WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _spans WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _strays WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _report_spans WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _matched_reports WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _held_lines WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _held_group_lines WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _held WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _deeds WHERE run_no IN (SELECT run_no FROM _touched_runs);
DELETE FROM _group_fixes WHERE experiment IN (SELECT experiment FROM _touched);
DELETE FROM _runs WHERE experiment IN (SELECT experiment FROM _touched);
DELETE FROM _reports WHERE experiment IN (SELECT experiment FROM _touched);
DELETE FROM _restores WHERE experiment IN (SELECT experiment FROM _touched);
DELETE FROM _history WHERE experiment IN (SELECT experiment FROM _touched);
DELETE FROM _fates WHERE experiment IN (SELECT experiment FROM _touched);
-- step: derive_lines
INSERT INTO _runs SELECT * FROM _runs_now;
INSERT INTO _group_fixes SELECT * FROM _group_fixes_now;
INSERT INTO _rare SELECT * FROM _rare_now;
-- step: derive_spans
SET disabled_optimizers = 'build_side_probe_side';  -- the right side of each join here is the small one
CREATE OR REPLACE TEMP TABLE _closings AS SELECT * FROM _group_ends;
CREATE OR REPLACE TEMP TABLE _again AS  -- siblings dispatched more than once in a run
SELECT run_no, group_key, generation_index FROM _own WHERE ends_as IS NULL
GROUP BY run_no, group_key, generation_index HAVING count(*) > 1;
CREATE OR REPLACE TEMP TABLE _next AS
SELECT d.run_no, d.group_key, d.generation_index, d.attempt, d.seq, lead(d.seq) OVER w AS next_seq, lead(d.t) OVER w AS next_t
FROM (SELECT run_no, group_key, generation_index, attempt, seq, t FROM _own WHERE ends_as IS NULL) d
SEMI JOIN _again a ON a.run_no = d.run_no AND a.group_key = d.group_key
    AND a.generation_index IS NOT DISTINCT FROM d.generation_index
WINDOW w AS (PARTITION BY d.run_no, d.group_key, d.generation_index ORDER BY d.seq);
CREATE OR REPLACE TEMP TABLE _odd_siblings AS  -- the order of their lines must be looked at
SELECT DISTINCT run_no, group_key, generation_index
FROM (SELECT run_no, group_key, generation_index FROM _next
      GROUP BY run_no, group_key, generation_index, attempt HAVING count(*) > 1);
CREATE OR REPLACE TEMP VIEW _by_name AS  -- of the others, what ends a dispatch by name is a line of its attempt
SELECT d.run_no, d.seq, d.group_key, d.prompt_id, d.generation_index, d.attempt, d.weight_version, d.t AS start_t,
       e.seq AS end_seq, e.t AS end_t, e.ends_as AS end_kind, n.next_seq, n.next_t
FROM (SELECT * FROM _own WHERE ends_as IS NULL) d
ANTI JOIN _odd_siblings o ON o.run_no = d.run_no AND o.group_key = d.group_key
    AND o.generation_index IS NOT DISTINCT FROM d.generation_index
LEFT JOIN (SELECT * FROM _next WHERE next_seq IS NOT NULL) n ON n.run_no = d.run_no AND n.seq = d.seq
LEFT JOIN (SELECT run_no, group_key, generation_index, attempt, seq, t, ends_as FROM _own WHERE ends_as IS NOT NULL) e
     ON e.run_no = d.run_no AND e.group_key = d.group_key
    AND e.generation_index IS NOT DISTINCT FROM d.generation_index AND e.attempt IS NOT DISTINCT FROM d.attempt;
CREATE OR REPLACE TEMP VIEW _spans_now AS
WITH with_group AS (  -- of the lines of its group, those later than the dispatch
    SELECT s.*,
           CASE WHEN g.lines IS NULL THEN CASE WHEN g.sealed_seq > s.seq THEN g.sealed_seq END
                ELSE list_filter(g.lines, lambda l: l.seq > s.seq AND l.event = 'group_sealed')[1].seq END AS sealed_seq,
           CASE WHEN g.lines IS NULL THEN CASE WHEN g.sealed_seq > s.seq THEN g.sealed_t END
                ELSE list_filter(g.lines, lambda l: l.seq > s.seq AND l.event = 'group_sealed')[1].t END AS sealed_t,
           CASE WHEN g.lines IS NULL THEN CASE WHEN g.discarded_seq > s.seq THEN g.discarded_seq END
                ELSE list_filter(g.lines, lambda l: l.seq > s.seq AND l.event = 'group_discarded')[1].seq END AS discarded_seq,
           CASE WHEN g.lines IS NULL THEN CASE WHEN g.discarded_seq > s.seq THEN g.discarded_t END
                ELSE list_filter(g.lines, lambda l: l.seq > s.seq AND l.event = 'group_discarded')[1].t END AS discarded_t,
           CASE WHEN g.lines IS NULL
                THEN least(CASE WHEN g.sealed_seq > s.seq THEN g.sealed_t END,
                           CASE WHEN g.finalized_seq > s.seq THEN g.finalized_t END,
                           CASE WHEN g.discarded_seq > s.seq THEN g.discarded_t END)
                ELSE list_min(list_transform(list_filter(g.lines, lambda l: l.seq > s.seq), lambda l: l.t)) END AS close_t,
           g.lines
    FROM _by_name s LEFT JOIN _closings g ON g.run_no = s.run_no AND g.group_key = s.group_key
), told AS (  -- the first of: by name, its group's seal or discard, another dispatch
    SELECT * EXCLUDE (end_seq, end_t, end_kind),
           least(end_seq, sealed_seq, discarded_seq, next_seq) AS end_seq,
           CASE least(end_seq, sealed_seq, discarded_seq, next_seq)
                WHEN sealed_seq THEN sealed_t WHEN discarded_seq THEN discarded_t WHEN next_seq THEN next_t ELSE end_t END AS end_t,
           CASE least(end_seq, sealed_seq, discarded_seq, next_seq)
                WHEN sealed_seq THEN 'sealed' WHEN discarded_seq THEN 'discarded' WHEN next_seq THEN 'superseded'
                ELSE end_kind END AS end_kind,
           coalesce(least(end_seq, sealed_seq, discarded_seq, next_seq) IN (sealed_seq, discarded_seq), false) AS by_group
    FROM with_group
)
SELECT s.run_no, s.seq, s.group_key, s.prompt_id, s.generation_index, s.attempt, s.weight_version, s.start_t, s.end_seq,
       CASE WHEN s.end_seq IS NULL THEN r.last_t ELSE s.end_t END AS end_t, s.end_kind, s.by_group,
       s.next_seq, s.close_t,
       s.end_kind = 'sealed' AND CASE
           WHEN s.lines IS NULL THEN coalesce(s.discarded_seq > s.end_seq AND (s.next_seq IS NULL OR s.discarded_seq < s.next_seq), false)
           ELSE len(list_filter(s.lines, lambda l: l.event = 'group_discarded' AND l.seq > s.end_seq
                                                   AND (s.next_seq IS NULL OR l.seq < s.next_seq))) > 0 END AS discarded
FROM told s JOIN _runs r ON r.run_no = s.run_no;
INSERT INTO _spans SELECT * FROM _spans_now;
CREATE OR REPLACE TEMP VIEW _by_name AS
WITH lines AS (  -- of odd siblings, in order; try counts dispatches
    SELECT l.*, count(*) FILTER (l.ends_as IS NULL) OVER (
               PARTITION BY l.run_no, l.group_key, l.generation_index ORDER BY l.seq ROWS UNBOUNDED PRECEDING) AS try
    FROM _own l SEMI JOIN _odd_siblings o ON o.run_no = l.run_no AND o.group_key = l.group_key
        AND o.generation_index IS NOT DISTINCT FROM l.generation_index
), dispatched AS (
    SELECT *, lead(seq) OVER w AS next_seq, lead(t) OVER w AS next_t FROM lines WHERE ends_as IS NULL
    WINDOW w AS (PARTITION BY run_no, group_key, generation_index ORDER BY seq)
), ended AS (  -- an end without attempt is that of the open attempt
    SELECT d.run_no, d.seq, min(e.seq) AS end_seq, arg_min(e.t, e.seq) AS end_t, arg_min(e.ends_as, e.seq) AS end_kind
    FROM dispatched d JOIN lines e
      ON e.run_no = d.run_no AND e.group_key = d.group_key AND e.try = d.try
     AND e.generation_index IS NOT DISTINCT FROM d.generation_index
     AND (e.attempt IS NULL OR e.attempt IS NOT DISTINCT FROM d.attempt)
    WHERE e.ends_as IS NOT NULL
    GROUP BY d.run_no, d.seq
)
SELECT d.run_no, d.seq, d.group_key, d.prompt_id, d.generation_index, d.attempt, d.weight_version, d.t AS start_t,
       e.end_seq, e.end_t, e.end_kind, d.next_seq, d.next_t
FROM dispatched d LEFT JOIN ended e USING (run_no, seq);
INSERT INTO _spans SELECT * FROM _spans_now;
CREATE OR REPLACE TEMP TABLE _more_siblings AS  -- of runs where something does not add up: ends that are not one to one
WITH runs AS (
    SELECT r.run_no FROM _touched_runs r
    LEFT JOIN (SELECT run_no, count(*) AS dispatches, count(*) FILTER (end_kind <> 'superseded' AND NOT by_group) AS ends,
                      bool_or(end_seq < seq) AS is_backward
               FROM _spans GROUP BY run_no) s USING (run_no)
    WHERE r.dispatches <> coalesce(s.dispatches, 0) OR r.ends <> coalesce(s.ends, 0) OR s.is_backward OR r.nameless_lines > 0
)
SELECT DISTINCT run_no, group_key, generation_index
FROM (SELECT run_no, group_key, generation_index
      FROM _own SEMI JOIN runs USING (run_no)
      GROUP BY run_no, group_key, generation_index, attempt
      HAVING NOT (count(*) - count(ends_as) = 1
                  AND (count(ends_as) = 0
                       OR count(ends_as) = 1 AND max(seq) FILTER (ends_as IS NULL) < max(seq) FILTER (ends_as IS NOT NULL)))) s
ANTI JOIN _odd_siblings o ON o.run_no = s.run_no AND o.group_key = s.group_key
    AND o.generation_index IS NOT DISTINCT FROM s.generation_index;
DELETE FROM _spans USING _more_siblings m
WHERE m.run_no = _spans.run_no AND m.group_key = _spans.group_key
  AND m.generation_index IS NOT DISTINCT FROM _spans.generation_index;
DELETE FROM _odd_siblings;
INSERT INTO _odd_siblings SELECT * FROM _more_siblings;
INSERT INTO _spans SELECT * FROM _spans_now;
RESET disabled_optimizers;
UPDATE _spans SET end_t = bound.t  -- where the clock has gone back: the greatest t on or after the own line
FROM (SELECT s.run_no, s.seq, max(e.t) AS t
      FROM _spans s
      JOIN _runs r ON r.run_no = s.run_no AND r.last_t_seq < s.seq
      JOIN events e ON e.experiment = r.experiment AND e.run = r.run AND e.seq >= s.seq
      WHERE s.end_seq IS NULL AND r.experiment IN (SELECT experiment FROM _touched)
      GROUP BY s.run_no, s.seq) AS bound
WHERE bound.run_no = _spans.run_no AND bound.seq = _spans.seq;
INSERT INTO _strays SELECT * FROM _strays_now;
DROP VIEW _spans_now;
DROP VIEW _by_name;
DROP TABLE _closings;
DROP TABLE _odd_siblings;
DROP TABLE _again;
DROP TABLE _next;
DROP TABLE _more_siblings;
-- step: derive_lineage
INSERT INTO _reports SELECT * FROM _reports_now;
INSERT INTO _report_spans SELECT * FROM _report_spans_now;
CREATE OR REPLACE TEMP TABLE _candidates AS SELECT * FROM _pool;
CREATE OR REPLACE TEMP TABLE _alive AS  -- spans of a candidate's run that nothing had ended at its cut
SELECT p.run_no, p.place, p.parent_no, p.cut_t, s.seq, s.next_seq, s.group_key, s.generation_index, s.attempt
FROM _spans s JOIN _candidates p ON p.parent_no = s.run_no
WHERE p.acted AND s.start_t <= p.cut_t AND (s.end_kind IS NULL OR s.end_t > p.cut_t);
INSERT INTO _restores
WITH nameless AS (SELECT * FROM _candidates WHERE NOT path_names_one
), stopped AS (  -- dispatched again or given up there by a later line of that run, before the cut
    SELECT a.run_no, a.place, a.seq
    FROM _alive a JOIN _spans d
      ON d.run_no = a.parent_no AND d.group_key = a.group_key AND d.seq > a.seq AND d.start_t <= a.cut_t
     AND d.generation_index IS NOT DISTINCT FROM a.generation_index
    WHERE a.next_seq IS NOT NULL
    UNION ALL
    SELECT a.run_no, a.place, a.seq
    FROM _alive a JOIN _words w
      ON w.run_no = a.parent_no AND w.group_key = a.group_key AND w.seq > a.seq AND w.t <= a.cut_t
     AND w.generation_index IS NOT DISTINCT FROM a.generation_index AND w.attempt IS NOT DISTINCT FROM a.attempt
    WHERE w.event = 'attempt_abandoned'
), sealed AS (
    SELECT DISTINCT l.run_no, l.group_key FROM _rare l SEMI JOIN _candidates p ON p.run_no = l.run_no WHERE l.event = 'group_sealed'
), forgotten AS (
    SELECT run_no, place, count(DISTINCT (group_key, generation_index, attempt)) AS against
    FROM _alive a
    ANTI JOIN stopped USING (run_no, place, seq)
    ANTI JOIN sealed s ON s.run_no = a.run_no AND s.group_key = a.group_key
    ANTI JOIN _spans d ON d.run_no = a.run_no AND d.group_key = a.group_key
        AND d.generation_index IS NOT DISTINCT FROM a.generation_index
    ANTI JOIN _words w ON w.run_no = a.run_no AND w.group_key = a.group_key AND w.attempt = a.attempt
        AND w.generation_index IS NOT DISTINCT FROM a.generation_index
    GROUP BY run_no, place
), unknown_prompts AS (  -- only where the path names nothing
    SELECT n.run_no, n.place, count(*) AS against
    FROM nameless n
    JOIN (SELECT s.run_no, coalesce(s.prompt_id, s.group_key) AS prompt, arg_min(s.start_t, s.seq) AS first_t
          FROM _spans s JOIN (SELECT DISTINCT parent_no FROM nameless) p ON p.parent_no = s.run_no GROUP BY ALL) f
        ON f.run_no = n.parent_no AND f.first_t > n.cut_t
    ANTI JOIN (SELECT s.run_no, coalesce(s.prompt_id, s.group_key) AS prompt
               FROM _spans s JOIN (SELECT DISTINCT run_no FROM nameless) r ON r.run_no = s.run_no) d
        ON d.run_no = n.run_no AND d.prompt = f.prompt
    GROUP BY n.run_no, n.place
), taken AS (
    SELECT p.*, p.reports_against + coalesce(f.against, 0) + coalesce(u.against, 0) AS contradictions
    FROM _candidates p LEFT JOIN forgotten f USING (run_no, place) LEFT JOIN unknown_prompts u USING (run_no, place)
    QUALIFY row_number() OVER (PARTITION BY p.run_no ORDER BY contradictions, p.place DESC) = 1
        AND (p.path_names_one OR p.explains > 0 AND contradictions = 0)
)
SELECT l.experiment, l.run, l.run_no, l.restore_seq, l.restore_t, l.path, l.tries, l.first_dispatch_t, l.acted,
       t.parent_run, t.parent_no, t.snapshot_seq, t.step AS snapshot_step, t.published_t, t.cut_t,
       CASE WHEN t.run_no IS NOT NULL THEN coalesce(t.match, 'evidence') END AS match, t.contradictions
FROM _restore_lines l LEFT JOIN taken t USING (run_no);
DROP TABLE _candidates;
DROP TABLE _alive;
INSERT INTO _history SELECT * FROM _history_now;
INSERT INTO _matched_reports SELECT * FROM _matched_reports_now;
-- step: portion
INSERT INTO _portion SELECT run_no FROM _touched_runs;
-- step: derive_fates
INSERT INTO _held_groups SELECT * FROM _held_groups_now;
INSERT INTO _held_lines SELECT * FROM _held_lines_now;
INSERT INTO _held_group_lines SELECT * FROM _held_group_lines_now;
INSERT INTO _held SELECT * FROM _held_now;
INSERT INTO _deeds SELECT * FROM _deeds_now;
INSERT INTO _fates SELECT * FROM _fates_now;
-- step: end
DELETE FROM _portion;
DELETE FROM _touched;
COMMIT;
