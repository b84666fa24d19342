-- Internal: what a restored snapshot held (semantics, end of section 3): the spans of its history that were running
-- there, and the sealed ones whose group was not closed there. Only spans around a cut come here, never the bulk.

-- _held_groups: groups with a span around any cut, or discarded in a run that restored; group_no stands for one below.
CREATE TABLE IF NOT EXISTS _held_groups(experiment_no INTEGER, group_key VARCHAR, group_no INTEGER);

-- _around: spans at the end of each ancestor's part of a history, by what their own run says up to there.
CREATE OR REPLACE VIEW _around AS
WITH limits AS (
    SELECT DISTINCT ancestor_no, upto FROM _history SEMI JOIN _portion USING (run_no)
)
SELECT l.ancestor_no, l.upto, s.seq, s.next_seq, s.group_key, s.generation_index, s.attempt,
       s.end_kind IS NULL OR s.end_t > l.upto AS running
FROM _spans s JOIN limits l ON l.ancestor_no = s.run_no
WHERE s.start_t <= l.upto
  AND (s.end_kind IS NULL OR s.end_t > l.upto OR s.end_kind = 'sealed' AND (s.close_t IS NULL OR s.close_t > l.upto));

CREATE OR REPLACE VIEW _held_groups_now AS
WITH groups AS (
    SELECT r.experiment_no, a.group_key FROM _around a JOIN _runs r ON r.run_no = a.ancestor_no
    UNION
    SELECT r.experiment_no, d.group_key
    FROM _rare d JOIN _runs r USING (run_no) SEMI JOIN _restores t USING (run_no) SEMI JOIN _portion USING (run_no)
    WHERE d.event = 'group_discarded' AND d.group_key IS NOT NULL
)
SELECT experiment_no, group_key, coalesce((SELECT max(group_no) FROM _held_groups), 0) + row_number() OVER ()
FROM groups ANTI JOIN _held_groups USING (experiment_no, group_key);

-- _held_lines: of those groups, the dispatches of runs that restored, and _words; _held_group_lines: every line about
-- the group.
CREATE TABLE IF NOT EXISTS _held_lines(
    run_no INTEGER, seq BIGINT, t DOUBLE, event VARCHAR, group_no INTEGER, generation_index INTEGER, attempt INTEGER,
    reason VARCHAR);
CREATE TABLE IF NOT EXISTS _held_group_lines(run_no INTEGER, seq BIGINT, t DOUBLE, event VARCHAR, group_no INTEGER);

CREATE OR REPLACE VIEW _held_lines_now AS
SELECT l.run_no, l.seq, l.t, l.event, g.group_no, l.generation_index, l.attempt, l.reason
FROM (SELECT run_no, seq, start_t AS t, 'attempt_dispatched' AS event, group_key, generation_index, attempt, NULL AS reason
      FROM _spans SEMI JOIN _restores USING (run_no)
      UNION ALL
      FROM _words) l
JOIN _runs r USING (run_no) SEMI JOIN _portion USING (run_no)
JOIN _held_groups g ON g.experiment_no = r.experiment_no AND g.group_key = l.group_key;

CREATE OR REPLACE VIEW _held_group_lines_now AS
SELECT l.run_no, l.seq, l.t, l.event, g.group_no
FROM _rare l JOIN _runs r USING (run_no) SEMI JOIN _portion USING (run_no)
JOIN _held_groups g ON g.experiment_no = r.experiment_no AND g.group_key = l.group_key
WHERE starts_with(l.event, 'group_');

-- _held: one row per restore and span that its snapshot held.
CREATE TABLE IF NOT EXISTS _held(
    run_no INTEGER, span_no INTEGER, span_seq BIGINT, group_no INTEGER, generation_index INTEGER, attempt INTEGER,
    running BOOLEAN, sealed BOOLEAN);

-- _held_now: a descendant in the history may have given the attempt up, sealed it, dispatched its sibling anew or
-- closed its group; in the span's own run a restart abandonment is left to look for, and lines that a clock set back
-- puts before the cut.
CREATE OR REPLACE VIEW _held_now AS
WITH spans AS MATERIALIZED (
    SELECT h.run_no, h.depth, h.upto, a.ancestor_no AS span_no, a.seq AS span_seq, a.next_seq, a.group_key, g.group_no,
           a.generation_index, a.attempt, a.running
    FROM _history h SEMI JOIN _portion USING (run_no)
    JOIN _around a ON a.ancestor_no = h.ancestor_no AND a.upto = h.upto
    JOIN _runs r ON r.run_no = h.ancestor_no
    JOIN _held_groups g ON g.experiment_no = r.experiment_no AND g.group_key = a.group_key
), later AS (
    SELECT s.run_no, s.span_no, s.span_seq, l.event, l.attempt IS NOT DISTINCT FROM s.attempt AS same_attempt, l.seq,
           min(l.seq) FILTER (l.event = 'attempt_dispatched')
               OVER (PARTITION BY s.run_no, s.span_no, s.span_seq, h.ancestor_no) AS dispatched_seq
    FROM spans s
    JOIN _history h ON h.run_no = s.run_no AND h.depth < s.depth
    JOIN _held_lines l ON l.run_no = h.ancestor_no AND l.group_no = s.group_no
     AND l.generation_index IS NOT DISTINCT FROM s.generation_index
    WHERE l.t <= h.upto
), told AS (
    SELECT run_no, span_no, span_seq, bool_or(stopped) AS stopped, bool_or(sealed) AS sealed
    FROM (SELECT run_no, span_no, span_seq,
                 event = 'attempt_dispatched' OR event = 'attempt_abandoned' AND same_attempt AS stopped,
                 event = 'attempt_sealed' AND same_attempt AND (dispatched_seq IS NULL OR seq < dispatched_seq) AS sealed
          FROM later
          UNION ALL
          SELECT s.run_no, s.span_no, s.span_seq, true, false
          FROM spans s JOIN _held_lines l ON l.run_no = s.span_no AND l.group_no = s.group_no AND l.seq > s.span_seq
           AND l.generation_index IS NOT DISTINCT FROM s.generation_index AND l.attempt IS NOT DISTINCT FROM s.attempt
          WHERE l.event = 'attempt_abandoned' AND l.t <= s.upto
          UNION ALL
          SELECT s.run_no, s.span_no, s.span_seq, true, false
          FROM spans s JOIN _spans d ON d.run_no = s.span_no AND d.group_key = s.group_key AND d.seq > s.span_seq
           AND d.generation_index IS NOT DISTINCT FROM s.generation_index
          WHERE s.running AND s.next_seq IS NOT NULL AND d.start_t <= s.upto)
    GROUP BY run_no, span_no, span_seq
), closed AS (
    SELECT s.run_no, s.span_no, s.span_seq, bool_or(l.event = 'group_sealed') AS by_seal
    FROM spans s
    JOIN _history h ON h.run_no = s.run_no AND h.depth < s.depth
    JOIN _held_group_lines l ON l.run_no = h.ancestor_no AND l.group_no = s.group_no AND l.t <= h.upto
    WHERE l.event IN ('group_sealed', 'group_finalized', 'group_discarded')
    GROUP BY s.run_no, s.span_no, s.span_seq
), states AS (
    SELECT s.run_no, s.span_no, s.span_seq, s.group_no, s.generation_index, s.attempt,
           s.running AND NOT coalesce(t.stopped OR t.sealed, false) AND NOT coalesce(c.by_seal, false) AS running,
           (NOT s.running OR coalesce(t.sealed, false)) AND c.run_no IS NULL AS sealed
    FROM spans s
    LEFT JOIN told t USING (run_no, span_no, span_seq)
    LEFT JOIN closed c USING (run_no, span_no, span_seq)
)
SELECT * FROM states WHERE running OR sealed;
