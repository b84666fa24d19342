-- Internal: the lines about attempts and groups, each with the group it belongs to.

-- _group_fixes: the group of lines that bear no group_id, where it is not simply their prompt_id.
-- One row per such line. Empty for traces that name the group everywhere, or nowhere.
CREATE TABLE IF NOT EXISTS _group_fixes(experiment VARCHAR, run VARCHAR, seq BIGINT, group_key VARCHAR);

CREATE OR REPLACE VIEW _group_fixes_now AS
WITH about AS (
    SELECT experiment, run, seq, event, group_id, prompt_id, generation_index,
           starts_with(event, 'attempt_') OR starts_with(event, 'group_') AS is_line
    FROM events WHERE experiment IN (SELECT experiment FROM _touched)
), mixed AS (
    SELECT experiment FROM about GROUP BY experiment
    HAVING bool_or(is_line AND group_id IS NULL)
       AND (bool_or(group_id IS NOT NULL) OR bool_or(is_line AND prompt_id IS NULL))
), loose_prompts AS (
    SELECT DISTINCT experiment, prompt_id FROM about SEMI JOIN mixed USING (experiment)
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
    SELECT experiment, run, seq, generation_index FROM about SEMI JOIN mixed USING (experiment)
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

-- _touched_lines: the same for the experiments being derived.
CREATE OR REPLACE VIEW _touched_lines AS
SELECT * FROM _lines WHERE experiment IN (SELECT experiment FROM _touched);
