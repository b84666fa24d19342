-- Internal: what restores make of spans (semantics, section 4): who lost them, who gave them up, who sealed them.

-- _deeds: what a restoring run does with each span its snapshot held, before it dispatches the sibling again.
-- again_seq: that dispatch, NULL where there is none. reason: its first word on giving the attempt up, NULL where that
-- is restart.
CREATE TABLE IF NOT EXISTS _deeds(
    run_no INTEGER, span_no INTEGER, span_seq BIGINT, group_no INTEGER, running BOOLEAN, sealed BOOLEAN, again_seq BIGINT,
    mentions_group BOOLEAN, group_sealed_seq BIGINT, abandons BOOLEAN, reason VARCHAR, reports BOOLEAN, seal_seq BIGINT);

CREATE OR REPLACE VIEW _deeds_now AS
WITH again AS (
    SELECT run_no, group_no, generation_index, min(seq) AS again_seq
    FROM _held_lines WHERE event = 'attempt_dispatched' GROUP BY run_no, group_no, generation_index
), held AS MATERIALIZED (
    SELECT h.*, a.again_seq
    FROM _held h SEMI JOIN _portion USING (run_no)
    LEFT JOIN again a ON a.run_no = h.run_no AND a.group_no = h.group_no
        AND a.generation_index IS NOT DISTINCT FROM h.generation_index
), words AS (
    SELECT run_no, span_no, span_seq, bool_or(gives_up AND before) AS abandons,
           nullif(arg_min(reason, seq) FILTER (gives_up AND before), 'restart') AS reason,
           bool_or(gives_up AND reason = 'restart') AS reports, min(seq) FILTER (NOT gives_up AND before) AS seal_seq
    FROM (SELECT h.run_no, h.span_no, h.span_seq, l.seq, l.reason, l.event = 'attempt_abandoned' AS gives_up,
                 h.again_seq IS NULL OR l.seq < h.again_seq AS before
          FROM held h JOIN _held_lines l ON l.run_no = h.run_no AND l.group_no = h.group_no
           AND l.generation_index IS NOT DISTINCT FROM h.generation_index AND l.attempt IS NOT DISTINCT FROM h.attempt
          WHERE l.event IN ('attempt_abandoned', 'attempt_sealed'))
    GROUP BY run_no, span_no, span_seq
), groups AS (
    SELECT run_no, group_no, min(seq) FILTER (event = 'group_sealed') AS group_sealed_seq
    FROM (SELECT run_no, group_no, seq, event FROM _held_group_lines
          UNION ALL SELECT run_no, group_no, seq, event FROM _held_lines)
    GROUP BY run_no, group_no
)
SELECT h.run_no, h.span_no, h.span_seq, h.group_no, h.running, h.sealed, h.again_seq, g.run_no IS NOT NULL AS mentions_group,
       g.group_sealed_seq, coalesce(w.abandons, false) AS abandons, w.reason, coalesce(w.reports, false) AS reports,
       least(w.seal_seq, CASE WHEN h.again_seq IS NULL OR g.group_sealed_seq < h.again_seq THEN g.group_sealed_seq END) AS seal_seq
FROM held h LEFT JOIN words w USING (run_no, span_no, span_seq) LEFT JOIN groups g USING (run_no, group_no);

-- _lost: one row per restore and way a span is lost to it, before it is settled which of them has the span.
CREATE OR REPLACE VIEW _lost AS
WITH restores AS (SELECT * FROM _restores SEMI JOIN _portion USING (run_no)),
branches AS (  -- runs off the history, over before the restore, that descend from a run of it
    SELECT DISTINCT r.run_no, d.run_no AS branch, r.restore_t, r.run
    FROM restores r
    JOIN _history h ON h.run_no = r.run_no
    JOIN _history d ON d.ancestor_no = h.ancestor_no AND d.run_no <> r.run_no
    JOIN _runs b ON b.run_no = d.run_no AND b.last_t < r.restore_t
     AND NOT coalesce(b.last_act_t > coalesce(r.first_dispatch_t, r.restore_t), false)
    ANTI JOIN _history own ON own.run_no = r.run_no AND own.ancestor_no = d.run_no
), first_branches AS (  -- the earliest restore has them all, but where a later one may bring some back
    FROM branches
    QUALIFY row_number() OVER (PARTITION BY branch ORDER BY restore_t, run) = 1
         OR branch IN (SELECT ancestor_no FROM _history)
), mentioned_below AS (  -- groups that a run with this one in its history mentions
    SELECT DISTINCT h.ancestor_no AS run_no, l.group_no
    FROM (SELECT * FROM _history SEMI JOIN _portion USING (run_no)) h
    JOIN (SELECT run_no, group_no FROM _held_lines UNION SELECT run_no, group_no FROM _held_group_lines) l
        USING (run_no)
)
SELECT m.run_no, m.span_no, m.span_seq, 1 AS letter
FROM _matched_reports m SEMI JOIN restores r USING (run_no)
UNION ALL
SELECT d.run_no, d.span_no, d.span_seq, 2
FROM _deeds d JOIN restores r USING (run_no)
WHERE d.running AND r.acted AND NOT d.abandons AND d.seal_seq IS NULL
UNION ALL
SELECT d.run_no, d.span_no, d.span_seq, 3
FROM _deeds d JOIN restores r USING (run_no)
WHERE d.sealed AND r.acted AND NOT d.reports AND d.again_seq IS NOT NULL
  AND (d.group_sealed_seq IS NULL OR d.again_seq < d.group_sealed_seq)
UNION ALL
SELECT d.run_no, d.span_no, d.span_seq, 4
FROM _deeds d JOIN restores r USING (run_no)
ANTI JOIN mentioned_below b ON b.run_no = d.run_no AND b.group_no = d.group_no
WHERE d.sealed AND r.acted AND NOT d.mentions_group
UNION ALL
SELECT r.run_no, s.run_no, s.seq, 5
FROM restores r JOIN _spans s ON s.run_no = r.parent_no AND s.start_t > r.cut_t
UNION ALL
SELECT b.run_no, s.run_no, s.seq, 6
FROM first_branches b JOIN _spans s ON s.run_no = b.branch;

-- _discards: spans sealed in a run's history, or by it, whose group that run discards afterwards, the sibling not
-- dispatched between. The seal is the span's own end, or that of a run which restored it running.
CREATE OR REPLACE VIEW _discards AS
WITH discards AS (
    SELECT l.run_no, l.group_no, l.seq
    FROM _held_group_lines l SEMI JOIN _restores USING (run_no) SEMI JOIN _portion USING (run_no)
    WHERE l.event = 'group_discarded'
), spans AS (
    SELECT s.run_no, s.seq, s.start_t, s.generation_index, s.end_seq, s.end_t, s.end_kind, g.group_no
    FROM _spans s JOIN _runs x USING (run_no)
    JOIN _held_groups g ON g.experiment_no = x.experiment_no AND g.group_key = s.group_key
    SEMI JOIN discards d ON d.group_no = g.group_no
), seals AS (
    SELECT group_no, generation_index, run_no AS span_no, seq AS span_seq, run_no AS seal_no, end_seq AS seal_seq, end_t AS seal_t
    FROM spans WHERE end_kind = 'sealed'
    UNION ALL
    SELECT x.group_no, s.generation_index, x.span_no, x.span_seq, x.run_no, x.seal_seq, l.t
    FROM _deeds x
    JOIN spans s ON s.run_no = x.span_no AND s.seq = x.span_seq
    JOIN (SELECT run_no, seq, t FROM _held_lines UNION ALL SELECT run_no, seq, t FROM _held_group_lines) l
        ON l.run_no = x.run_no AND l.seq = x.seal_seq
    WHERE x.running AND NOT x.abandons
), parts AS (  -- what of each run a discarding run stands on: its history, and its own lines to the discard
    SELECT d.run_no, d.seq, d.group_no, h.ancestor_no AS part, h.upto, 9223372036854775807 AS before_seq, h.depth
    FROM discards d JOIN _history h USING (run_no)
    UNION ALL
    SELECT run_no, seq, group_no, run_no, 'infinity'::DOUBLE, seq, 0 FROM discards
)
SELECT DISTINCT p.run_no, s.span_no, s.span_seq
FROM seals s JOIN parts p ON p.group_no = s.group_no AND p.part = s.seal_no
WHERE s.seal_t <= p.upto AND s.seal_seq < p.before_seq AND (p.depth > 0 OR s.span_no <> p.run_no)
  AND NOT EXISTS (
      SELECT 1 FROM parts q JOIN spans l ON l.run_no = q.part AND l.group_no = q.group_no
      WHERE q.run_no = p.run_no AND q.seq = p.seq AND l.generation_index IS NOT DISTINCT FROM s.generation_index
        AND l.start_t <= q.upto AND l.seq < q.before_seq
        AND (q.depth < p.depth OR q.depth = p.depth AND l.seq > s.seal_seq));

-- _fates: one row per span whose fate restores decide: lost, given up, sealed or discarded by a run that restored it.
-- lost_by_run and lost_how are NULL unless its fate is restart; cut_t is NULL where that restore's cut is unknown.
CREATE TABLE IF NOT EXISTS _fates(
    experiment VARCHAR, run VARCHAR, run_no INTEGER, seq BIGINT, fate VARCHAR, lost_by_run VARCHAR, lost_how VARCHAR,
    cut_t DOUBLE, restore_t DOUBLE);

CREATE OR REPLACE VIEW _fates_now AS
WITH restores AS (  -- in their order
    SELECT *, row_number() OVER (ORDER BY restore_t, run) AS place
    FROM _restores WHERE experiment IN (SELECT experiment FROM _touched)
), lost AS (
    SELECT * FROM _lost
    UNION ALL  -- reported by a restore whose cut is unknown, of any family: the latest dispatch before it
    SELECT run_no, span_no, span_seq, 7
    FROM (SELECT p.* FROM _report_spans p JOIN restores r USING (run_no)
          JOIN _runs x ON x.run_no = p.span_no
          WHERE r.parent_no IS NULL AND p.start_t <= r.restore_t
          QUALIFY row_number() OVER (PARTITION BY p.run_no, p.first_seq
                                     ORDER BY p.start_t DESC, x.first_t DESC, x.run DESC, p.span_seq DESC) = 1)
    WHERE span_no IN (SELECT run_no FROM _portion)
), may_be_lost AS (  -- a run that goes on after the restoring run's first dispatch was not stopped
    SELECT l.*, r.place, s.end_kind, s.end_t
    FROM lost l
    JOIN restores r USING (run_no)
    JOIN _runs x ON x.run_no = l.span_no
    JOIN _spans s ON s.run_no = l.span_no AND s.seq = l.span_seq
    WHERE NOT coalesce(x.last_act_t > coalesce(r.first_dispatch_t, r.restore_t), false)
      AND (s.end_kind IS NULL OR s.end_kind = 'sealed')
), brought_back AS (  -- its seal lies in the history of a later restore that does not descend from this one
    SELECT DISTINCT l.run_no, l.span_no, l.span_seq
    FROM may_be_lost l
    JOIN _history h ON h.ancestor_no = l.span_no AND l.end_t <= h.upto AND h.run_no <> l.run_no
    JOIN restores later ON later.run_no = h.run_no AND later.place > l.place
    ANTI JOIN _history through ON through.run_no = h.run_no AND through.ancestor_no = l.run_no
    WHERE l.end_kind = 'sealed'
), deeds AS (
    SELECT d.*, r.place, s.end_kind
    FROM _deeds d SEMI JOIN _portion USING (run_no) JOIN restores r USING (run_no)
    JOIN _spans s ON s.run_no = d.span_no AND s.seq = d.span_seq
    WHERE d.running AND (d.reason IS NOT NULL OR d.seal_seq IS NOT NULL)
), claims AS (  -- of each restore on a span: the letter it claims it by, and its place
    SELECT span_no AS run_no, span_seq AS seq, letter, place
    FROM may_be_lost l ANTI JOIN brought_back b USING (run_no, span_no, span_seq)
    UNION ALL
    SELECT span_no, span_seq, 0, place
    FROM deeds WHERE reason IS NOT NULL AND (end_kind IS NULL OR end_kind IN ('sealed', 'discarded'))
    UNION ALL
    SELECT span_no, span_seq, 9, place FROM deeds WHERE seal_seq IS NOT NULL AND NOT abandons AND end_kind IS NULL
    UNION ALL
    SELECT span_no, span_seq, 8, 0 FROM _discards
), taken AS (  -- the earliest has it, one with a known cut before one without: the least of a number put together of these
    SELECT run_no, seq, least_claim & 15 AS letter, (least_claim >> 4) & ((1::BIGINT << 40) - 1) AS place
    FROM (SELECT run_no, seq, min((greatest(letter, 6)::BIGINT << 44) | (place << 4) | letter) AS least_claim
          FROM claims GROUP BY run_no, seq)
)
SELECT x.experiment, x.run, c.run_no, c.seq,
       CASE c.letter WHEN 0 THEN d.reason WHEN 8 THEN 'discarded' WHEN 9 THEN 'kept' ELSE 'restart' END AS fate,
       CASE WHEN c.letter BETWEEN 1 AND 7 THEN r.run END AS lost_by_run,
       CASE c.letter WHEN 1 THEN 'reported' WHEN 2 THEN 'silent' WHEN 3 THEN 'redone' WHEN 4 THEN 'dropped'
                     WHEN 5 THEN 'after_cut' WHEN 6 THEN 'discarded_branch' WHEN 7 THEN 'reported' END AS lost_how,
       CASE WHEN c.letter BETWEEN 1 AND 7 THEN r.cut_t END AS cut_t, r.restore_t
FROM taken c
JOIN _runs x USING (run_no)
LEFT JOIN restores r ON r.place = c.place
LEFT JOIN (SELECT * FROM _deeds WHERE reason IS NOT NULL) d
    ON c.letter = 0 AND d.run_no = r.run_no AND d.span_no = c.run_no AND d.span_seq = c.seq;
