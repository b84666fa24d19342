-- Internal: one span per dispatch with what its own run says of it (semantics, section 4).

-- end_kind is NULL while open, end_t is then the bound. by_group: a line of its group ended it. next_seq: the next
-- dispatch of the sibling in the run. close_t: when a later line of the run first seals, finalizes or discards the group.
-- discarded: a discard of the group came after the seal, the sibling not dispatched between.
CREATE TABLE IF NOT EXISTS _tries(
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
JOIN _runs r ON r.experiment = e.experiment AND r.run = e.run
LEFT JOIN _group_fixes f ON f.experiment = e.experiment AND f.run = e.run AND f.seq = e.seq
WHERE e.event IN ('attempt_dispatched', 'attempt_sealed', 'attempt_abandoned') AND e.reason IS DISTINCT FROM 'restart'
  AND e.experiment IN (SELECT experiment FROM _touched)
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

CREATE OR REPLACE VIEW _tries_now AS
WITH attempts AS MATERIALIZED (  -- most attempts are dispatched once and end once by name
    SELECT run_no, group_key, generation_index, attempt, count(*) - count(ends_as) AS dispatches, count(ends_as) AS ends,
           min(seq) FILTER (ends_as IS NULL) AS seq, min(t) FILTER (ends_as IS NULL) AS start_t,
           any_value(prompt_id) FILTER (ends_as IS NULL) AS prompt_id,
           any_value(weight_version) FILTER (ends_as IS NULL) AS weight_version,
           max(seq) FILTER (ends_as IS NOT NULL) AS end_seq, min(t) FILTER (ends_as IS NOT NULL) AS end_t,
           any_value(ends_as) AS end_kind
    FROM _own GROUP BY run_no, group_key, generation_index, attempt
), odd AS MATERIALIZED (  -- siblings for which the order of the lines must be looked at
    SELECT DISTINCT run_no, group_key, generation_index FROM attempts
    WHERE NOT (dispatches = 1 AND (ends = 0 OR ends = 1 AND end_seq > seq))
), retried AS MATERIALIZED (  -- siblings that may have several attempts
    SELECT DISTINCT run_no, group_key, generation_index FROM attempts WHERE attempt IS DISTINCT FROM 0
), sorted AS (
    SELECT a.*, lead(a.seq) OVER w AS next_seq, lead(a.start_t) OVER w AS next_t
    FROM attempts a
    SEMI JOIN retried r ON r.run_no = a.run_no AND r.group_key = a.group_key
        AND r.generation_index IS NOT DISTINCT FROM a.generation_index
    ANTI JOIN odd o ON o.run_no = a.run_no AND o.group_key = a.group_key
        AND o.generation_index IS NOT DISTINCT FROM a.generation_index
    WINDOW w AS (PARTITION BY a.run_no, a.group_key, a.generation_index ORDER BY a.seq)
), lines AS (  -- of odd siblings, in order; try counts dispatches
    SELECT l.*, count(*) FILTER (l.ends_as IS NULL) OVER (
               PARTITION BY l.run_no, l.group_key, l.generation_index ORDER BY l.seq ROWS UNBOUNDED PRECEDING) AS try
    FROM _own l SEMI JOIN odd o ON o.run_no = l.run_no AND o.group_key = l.group_key
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
), by_name AS (
    SELECT a.run_no, a.seq, a.group_key, a.prompt_id, a.generation_index, a.attempt, a.weight_version, a.start_t, a.end_seq,
           a.end_t, a.end_kind, NULL::BIGINT AS next_seq, NULL::DOUBLE AS next_t
    FROM attempts a
    ANTI JOIN retried r ON r.run_no = a.run_no AND r.group_key = a.group_key
        AND r.generation_index IS NOT DISTINCT FROM a.generation_index
    ANTI JOIN odd o ON o.run_no = a.run_no AND o.group_key = a.group_key
        AND o.generation_index IS NOT DISTINCT FROM a.generation_index
    UNION ALL
    SELECT run_no, seq, group_key, prompt_id, generation_index, attempt, weight_version, start_t, end_seq, end_t, end_kind,
           next_seq, next_t
    FROM sorted
    UNION ALL
    SELECT d.run_no, d.seq, d.group_key, d.prompt_id, d.generation_index, d.attempt, d.weight_version, d.t, e.end_seq,
           e.end_t, e.end_kind, d.next_seq, d.next_t
    FROM dispatched d LEFT JOIN ended e USING (run_no, seq)
), with_group AS (  -- of the lines of its group, those later than the dispatch
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
    FROM by_name s LEFT JOIN _group_ends g ON g.run_no = s.run_no AND g.group_key = s.group_key
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
), bounds AS (  -- what nothing ends ran at least until the greatest t of its run on or after its own line
    SELECT s.run_no, s.seq, max(e.t) AS t
    FROM told s
    JOIN _runs r ON r.run_no = s.run_no AND r.last_t_seq < s.seq
    JOIN events e ON e.experiment = r.experiment AND e.run = r.run AND e.seq >= s.seq
    WHERE s.end_seq IS NULL
    GROUP BY s.run_no, s.seq
)
SELECT s.run_no, s.seq, s.group_key, s.prompt_id, s.generation_index, s.attempt, s.weight_version, s.start_t, s.end_seq,
       CASE WHEN s.end_seq IS NULL THEN coalesce(b.t, r.last_t) ELSE s.end_t END AS end_t, s.end_kind, s.by_group,
       s.next_seq, s.close_t,
       s.end_kind = 'sealed' AND CASE
           WHEN s.lines IS NULL THEN coalesce(s.discarded_seq > s.end_seq AND (s.next_seq IS NULL OR s.discarded_seq < s.next_seq), false)
           ELSE len(list_filter(s.lines, lambda l: l.event = 'group_discarded' AND l.seq > s.end_seq
                                                   AND (s.next_seq IS NULL OR l.seq < s.next_seq))) > 0 END AS discarded
FROM told s
JOIN _runs r ON r.run_no = s.run_no
LEFT JOIN bounds b ON b.run_no = s.run_no AND b.seq = s.seq;

-- _spans: the same with the names of experiment and run.
CREATE OR REPLACE VIEW _spans AS
SELECT r.experiment, r.run, s.* FROM _tries s JOIN _runs r USING (run_no);

-- _strays: one row per line that ends an attempt by name but no span: sealed or given up by a run that did not have it
-- running. Most runs have none: their lines that end an attempt are as many as their spans that one ended.
CREATE TABLE IF NOT EXISTS _strays(
    run_no INTEGER, seq BIGINT, t DOUBLE, group_key VARCHAR, generation_index INTEGER, attempt INTEGER, ends_as VARCHAR);

CREATE OR REPLACE VIEW _strays_now AS
WITH suspects AS (
    SELECT r.run_no FROM _runs r
    LEFT JOIN (SELECT run_no, count(*) AS ends FROM _tries WHERE end_kind <> 'superseded' AND NOT by_group GROUP BY run_no) s
        USING (run_no)
    WHERE r.ends > coalesce(s.ends, 0) AND r.experiment IN (SELECT experiment FROM _touched)
)
SELECT l.run_no, l.seq, l.t, l.group_key, l.generation_index, l.attempt, l.ends_as
FROM _own l SEMI JOIN suspects USING (run_no)
ANTI JOIN (SELECT run_no, end_seq FROM _tries WHERE end_kind <> 'superseded' AND NOT by_group) s
    ON s.run_no = l.run_no AND s.end_seq = l.seq
WHERE l.ends_as IS NOT NULL;

-- _sibling_lines: one row per line about an attempt, put together again from spans, strays and reports: to look up a few.
CREATE OR REPLACE VIEW _sibling_lines AS
WITH lines AS (
    SELECT run_no, seq, start_t AS t, 'attempt_dispatched' AS event, group_key, generation_index, attempt, NULL AS reason
    FROM _tries
    UNION ALL
    SELECT run_no, end_seq, end_t, CASE end_kind WHEN 'sealed' THEN 'attempt_sealed' ELSE 'attempt_abandoned' END, group_key,
           generation_index, attempt, CASE WHEN end_kind <> 'sealed' THEN end_kind END
    FROM _tries WHERE end_kind <> 'superseded' AND NOT by_group
    UNION ALL
    SELECT run_no, seq, t, CASE ends_as WHEN 'sealed' THEN 'attempt_sealed' ELSE 'attempt_abandoned' END, group_key,
           generation_index, attempt, CASE WHEN ends_as <> 'sealed' THEN ends_as END
    FROM _strays
    UNION ALL
    SELECT run_no, seq, t, event, group_key, generation_index, attempt, 'restart'
    FROM _rare WHERE event = 'attempt_abandoned' AND group_key IS NOT NULL
)
SELECT r.experiment_no, l.* FROM lines l JOIN _runs r USING (run_no)
WHERE r.experiment IN (SELECT experiment FROM _touched);
