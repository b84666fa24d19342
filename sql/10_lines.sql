-- Internal: runs, and the lines about attempts and groups, each with the group it belongs to.

-- _runs: one row per run. run_no stands for it in the tables below; experiment_no is the least of its experiment.
-- last_t_seq: a line of its greatest t. last_act_t: its last dispatch or publication, by which a fork is told from a
-- stopped run. ends: lines that may end an attempt by name. loose_lines: lines about attempts and groups without group_id; nameless_lines: without prompt_id too.
CREATE TABLE IF NOT EXISTS _runs(
    experiment VARCHAR, run VARCHAR, run_no INTEGER, experiment_no INTEGER, first_t DOUBLE, last_t DOUBLE,
    last_t_seq BIGINT, events BIGINT, last_seq BIGINT, first_dispatch_seq BIGINT, first_dispatch_t DOUBLE,
    last_act_t DOUBLE, dispatches BIGINT, seals BIGINT, ends BIGINT, publications BIGINT, lines_with_group BIGINT,
    loose_lines BIGINT, nameless_lines BIGINT);

CREATE OR REPLACE VIEW _runs_now AS
WITH counted AS (
    SELECT experiment, run, arg_min(t, seq) AS first_t, max(t) AS last_t, arg_max(seq, t) AS last_t_seq,
           count(*) AS events, max(seq) AS last_seq,
           min(seq) FILTER (event = 'attempt_dispatched') AS first_dispatch_seq,
           arg_min(t, seq) FILTER (event = 'attempt_dispatched') AS first_dispatch_t,
           max(t) FILTER (event IN ('attempt_dispatched', 'snapshot_published')) AS last_act_t,
           count(*) FILTER (event = 'attempt_dispatched') AS dispatches,
           count(*) FILTER (event = 'attempt_sealed') AS seals,
           count(*) FILTER (event = 'attempt_abandoned' AND reason IS DISTINCT FROM 'restart') + seals AS ends,
           count(*) FILTER (event = 'snapshot_published') AS publications,
           count(group_id) AS lines_with_group,
           count(*) FILTER (is_loose) AS loose_lines, count(*) FILTER (is_loose AND prompt_id IS NULL) AS nameless_lines
    FROM (SELECT *, CASE WHEN group_id IS NULL THEN starts_with(event, 'attempt_') OR starts_with(event, 'group_')
                    ELSE false END AS is_loose
          FROM events WHERE experiment IN (SELECT experiment FROM _touched))
    GROUP BY experiment, run
), numbered AS (
    SELECT *, coalesce((SELECT max(run_no) FROM _runs), 0) + row_number() OVER (ORDER BY experiment, run) AS run_no
    FROM counted
)
SELECT experiment, run, run_no, min(run_no) OVER (PARTITION BY experiment) AS experiment_no, first_t, last_t, last_t_seq,
       events, last_seq, first_dispatch_seq, first_dispatch_t, last_act_t, dispatches, seals, ends, publications,
       lines_with_group, loose_lines, nameless_lines
FROM numbered;

CREATE OR REPLACE VIEW _touched_runs AS SELECT * FROM _runs WHERE experiment IN (SELECT experiment FROM _touched);

-- _group_fixes: the group of lines that bear no group_id, where it is not simply their prompt_id.
-- One row per such line. Empty for traces that name the group everywhere, or nowhere.
CREATE TABLE IF NOT EXISTS _group_fixes(experiment VARCHAR, run VARCHAR, seq BIGINT, group_key VARCHAR);

CREATE OR REPLACE VIEW _group_fixes_now AS
WITH mixed AS (
    SELECT experiment FROM _runs WHERE experiment IN (SELECT experiment FROM _touched)
    GROUP BY experiment HAVING sum(loose_lines) > 0 AND (sum(lines_with_group) > 0 OR sum(nameless_lines) > 0)
), about AS (
    SELECT experiment, run, seq, event, group_id, prompt_id, generation_index,
           starts_with(event, 'attempt_') OR starts_with(event, 'group_') AS is_line
    FROM events SEMI JOIN mixed USING (experiment)
), loose_prompts AS (
    SELECT DISTINCT experiment, prompt_id FROM about
    WHERE is_line AND group_id IS NULL AND prompt_id IS NOT NULL
), borne AS (  -- the group_id that a prompt_id last bore on an earlier line of the run
    SELECT experiment, run, seq, prompt_id, group_id, is_line,
           last_value(group_id IGNORE NULLS) OVER (
               PARTITION BY experiment, run, prompt_id ORDER BY seq ROWS UNBOUNDED PRECEDING) AS last_borne
    FROM about SEMI JOIN loose_prompts USING (experiment, prompt_id)
), only_group AS (
    SELECT experiment, prompt_id, min(group_id) AS group_id FROM borne
    GROUP BY experiment, prompt_id HAVING min(group_id) = max(group_id)
), by_prompt AS (
    SELECT b.experiment, b.run, b.seq, coalesce(b.last_borne, o.group_id) AS group_key
    FROM borne b LEFT JOIN only_group o USING (experiment, prompt_id)
    WHERE b.is_line AND b.group_id IS NULL AND coalesce(b.last_borne, o.group_id) IS NOT NULL
), nameless AS (
    SELECT experiment, run, seq, generation_index FROM about
    WHERE is_line AND group_id IS NULL AND prompt_id IS NULL AND generation_index IS NOT NULL
), only_dispatched AS (  -- the experiment's only group that has dispatched this sibling
    SELECT a.experiment, a.generation_index, min(coalesce(p.group_key, a.group_id, a.prompt_id)) AS group_key
    FROM about a LEFT JOIN by_prompt p USING (experiment, run, seq)
    SEMI JOIN nameless n ON a.experiment = n.experiment AND a.generation_index = n.generation_index
    WHERE a.event = 'attempt_dispatched' AND coalesce(a.group_id, a.prompt_id) IS NOT NULL
    GROUP BY ALL
    HAVING min(coalesce(p.group_key, a.group_id, a.prompt_id)) = max(coalesce(p.group_key, a.group_id, a.prompt_id))
)
SELECT experiment, run, seq, group_key FROM by_prompt
UNION ALL
SELECT n.experiment, n.run, n.seq, o.group_key
FROM nameless n JOIN only_dispatched o USING (experiment, generation_index);

-- _lines: one row per line about an attempt or a group; group_key is NULL where the group cannot be told.
CREATE OR REPLACE VIEW _lines AS
SELECT e.experiment, e.run, e.seq, e.t, e.event, coalesce(f.group_key, e.group_id, e.prompt_id) AS group_key,
       e.prompt_id, e.generation_index, e.attempt, coalesce(e.reason, 'abandoned') AS reason, e.weight_version,
       e.file_id, e.line
FROM events e LEFT JOIN _group_fixes f ON f.experiment = e.experiment AND f.run = e.run AND f.seq = e.seq
WHERE e.event IN ('attempt_dispatched', 'attempt_sealed', 'attempt_abandoned', 'group_reserved', 'group_admitted',
                  'group_sealed', 'group_finalizing', 'group_finalized', 'group_discarded');

-- _rare: the lines that are neither a dispatch nor the end of an attempt by name, one row per line that the figures need.
CREATE TABLE IF NOT EXISTS _rare(
    run_no INTEGER, seq BIGINT, t DOUBLE, event VARCHAR, group_key VARCHAR, generation_index INTEGER, attempt INTEGER,
    step BIGINT, cut_time DOUBLE, path VARCHAR);

CREATE OR REPLACE VIEW _rare_now AS
SELECT r.run_no, e.seq, e.t, e.event, coalesce(f.group_key, e.group_id, e.prompt_id) AS group_key, e.generation_index,
       e.attempt, e.step, e.cut_time, e.path
FROM events e
JOIN _touched_runs r ON r.experiment = e.experiment AND r.run = e.run
LEFT JOIN _group_fixes f ON f.experiment = e.experiment AND f.run = e.run AND f.seq = e.seq
WHERE (e.event IN ('group_reserved', 'group_admitted', 'group_sealed', 'group_finalizing', 'group_finalized',
                   'group_discarded', 'snapshot_published', 'restore_started', 'restore_finished')
       OR e.event = 'attempt_abandoned' AND e.reason = 'restart');
