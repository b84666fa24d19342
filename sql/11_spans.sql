-- Internal: one span per dispatch with what its own run says of it (semantics, section 4).

-- end_kind is NULL while open, end_t is then the bound. by_group: a line of its group ended it. next_seq: the next
-- dispatch of the sibling in the run. close_t: when a later line of the run first seals, finalizes or discards the group.
-- discarded: a discard of the group came after the seal, the sibling not dispatched between.
CREATE TABLE IF NOT EXISTS _spans(
    run_no INTEGER, seq BIGINT, group_key VARCHAR, prompt_id VARCHAR, generation_index INTEGER, attempt INTEGER,
    weight_version BIGINT, start_t DOUBLE, end_seq BIGINT, end_t DOUBLE, end_kind VARCHAR, by_group BOOLEAN,
    next_seq BIGINT, close_t DOUBLE, discarded BOOLEAN);

-- _own: dispatches and what may end them by name, ends_as NULL for a dispatch.
CREATE OR REPLACE VIEW _own AS
SELECT r.run_no, coalesce(f.group_key, e.group_id, e.prompt_id) AS group_key, e.generation_index, e.attempt, e.seq, e.t,
       e.prompt_id, e.weight_version,
       CASE e.event WHEN 'attempt_dispatched' THEN NULL WHEN 'attempt_sealed' THEN 'sealed'
                    ELSE coalesce(e.reason, 'abandoned') END AS ends_as
FROM events e
JOIN _touched_runs r ON r.experiment = e.experiment AND r.run = e.run
LEFT JOIN _group_fixes f ON f.experiment = e.experiment AND f.run = e.run AND f.seq = e.seq
WHERE (e.event IN ('attempt_dispatched', 'attempt_sealed')
       OR e.event = 'attempt_abandoned' AND e.reason IS DISTINCT FROM 'restart')
  AND coalesce(f.group_key, e.group_id, e.prompt_id) IS NOT NULL;

-- _group_ends: one row per run and group: its closing lines. Most groups have one of a kind; for others, `lines`.
CREATE OR REPLACE VIEW _group_ends AS
WITH closings AS (
    SELECT c.run_no, c.group_key, c.seq, c.t, c.event
    FROM _rare c JOIN _runs r USING (run_no)
    WHERE c.event IN ('group_sealed', 'group_finalized', 'group_discarded') AND c.group_key IS NOT NULL
      AND r.experiment IN (SELECT experiment FROM _touched)
), counted AS (
    SELECT run_no, group_key,
           min(seq) FILTER (event = 'group_sealed') AS sealed_seq, min(t) FILTER (event = 'group_sealed') AS sealed_t,
           min(seq) FILTER (event = 'group_finalized') AS finalized_seq, min(t) FILTER (event = 'group_finalized') AS finalized_t,
           min(seq) FILTER (event = 'group_discarded') AS discarded_seq, min(t) FILTER (event = 'group_discarded') AS discarded_t,
           greatest(count(*) FILTER (event = 'group_sealed'), count(*) FILTER (event = 'group_finalized'),
                    count(*) FILTER (event = 'group_discarded')) > 1 AS again
    FROM closings GROUP BY run_no, group_key
), listed AS (
    SELECT c.run_no, c.group_key, list({'seq': c.seq, 't': c.t, 'event': c.event} ORDER BY c.seq) AS lines
    FROM closings c SEMI JOIN (SELECT * FROM counted WHERE again) a ON a.run_no = c.run_no AND a.group_key = c.group_key
    GROUP BY c.run_no, c.group_key
)
SELECT c.*, l.lines FROM counted c LEFT JOIN listed l USING (run_no, group_key);

-- _named_spans: the same with the names of experiment and run.
CREATE OR REPLACE VIEW _named_spans AS
SELECT r.experiment, r.run, s.* FROM _spans s JOIN _runs r USING (run_no);

-- _strays: one row per line that ends an attempt by name but no span: sealed or given up by a run that did not have it
-- running. Most runs have none: their lines that end an attempt are as many as their spans that one ended.
CREATE TABLE IF NOT EXISTS _strays(
    run_no INTEGER, seq BIGINT, t DOUBLE, group_key VARCHAR, generation_index INTEGER, attempt INTEGER, ends_as VARCHAR);

CREATE OR REPLACE VIEW _strays_now AS
WITH suspects AS (
    SELECT r.run_no FROM _runs r
    LEFT JOIN (SELECT run_no, count(*) AS ends FROM _spans WHERE end_kind <> 'superseded' AND NOT by_group GROUP BY run_no) s
        USING (run_no)
    WHERE r.ends > coalesce(s.ends, 0) AND r.experiment IN (SELECT experiment FROM _touched)
)
SELECT l.run_no, l.seq, l.t, l.group_key, l.generation_index, l.attempt, l.ends_as
FROM _own l SEMI JOIN suspects USING (run_no)
ANTI JOIN (SELECT run_no, end_seq FROM _spans WHERE end_kind <> 'superseded' AND NOT by_group) s
    ON s.run_no = l.run_no AND s.end_seq = l.seq
WHERE l.ends_as IS NOT NULL;

-- _words: one row per line by which a run ends or reports an attempt that it does not have running: what restores say of
-- the attempts they found. And ends that a clock set back puts before their dispatch.
CREATE OR REPLACE VIEW _words AS
SELECT run_no, seq, t, CASE ends_as WHEN 'sealed' THEN 'attempt_sealed' ELSE 'attempt_abandoned' END AS event, group_key,
       generation_index, attempt, CASE WHEN ends_as <> 'sealed' THEN ends_as END AS reason
FROM _strays
UNION ALL
SELECT run_no, seq, t, event, group_key, generation_index, attempt, 'restart'
FROM _rare WHERE event = 'attempt_abandoned' AND group_key IS NOT NULL
UNION ALL
SELECT run_no, end_seq, end_t, CASE end_kind WHEN 'sealed' THEN 'attempt_sealed' ELSE 'attempt_abandoned' END, group_key,
       generation_index, attempt, CASE WHEN end_kind <> 'sealed' THEN end_kind END
FROM _spans WHERE end_t < start_t AND end_kind <> 'superseded' AND NOT by_group;
