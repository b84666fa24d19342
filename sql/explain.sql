-- What rtrace_analytics.explain tells, with the run and seq of every line behind it.

-- step: experiments_of_prompt
SELECT DISTINCT experiment FROM _named_spans WHERE coalesce(prompt_id, group_key) = $prompt ORDER BY ALL

-- step: prompts
SELECT DISTINCT coalesce(prompt_id, group_key) FROM _named_spans WHERE $experiment IS NULL OR experiment = $experiment
ORDER BY ALL LIMIT 1000

-- step: experiments_of_restore
SELECT DISTINCT experiment FROM _restores WHERE run = $run ORDER BY ALL

-- step: restoring_runs
SELECT run FROM _restores WHERE $experiment IS NULL OR experiment = $experiment ORDER BY ALL LIMIT 1000

-- step: spans_of_prompt
WITH reports AS (
    SELECT p.span_id, p.run, p.t, p.verdict, r.first_seq AS seq
    FROM restart_reports p
    JOIN _reports r ON r.experiment = p.experiment AND r.run = p.run AND r.group_key = p.group_key
     AND r.generation_index IS NOT DISTINCT FROM p.generation_index AND r.attempt IS NOT DISTINCT FROM p.attempt
    WHERE p.experiment = $experiment AND p.span_id IS NOT NULL
), others AS (
    SELECT span_id, list({'run': run, 't': t, 'verdict': verdict, 'seq': seq} ORDER BY t, run) AS repeats
    FROM reports WHERE verdict IN ('repeated', 'not_stopped') GROUP BY span_id
)
SELECT a.span_id, a.run, s.seq, a.group_key, a.generation_index, a.attempt, a.start_t, a.end_t, a.duration_s, a.end_kind,
       s.end_seq, a.fate, a.lost_by_run, a.lost_how, a.cut_t, a.thrown_away_s, a.never_saved_s, x.last_t AS run_last_t,
       x.last_t_seq AS run_last_seq, r.restore_t, r.restore_seq, r.parent_run, r.snapshot_seq, c.t AS report_t,
       c.seq AS report_seq, o.repeats,
       row_number() OVER (PARTITION BY a.group_key, a.generation_index ORDER BY x.first_t, a.run, s.seq) > 1 AS is_again,
       last_value(a.span_id) OVER (PARTITION BY a.group_key ORDER BY a.generation_index, x.first_t, a.run, s.seq
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last_of_group
FROM (SELECT *, split_part(span_id, ':', -1)::BIGINT AS seq FROM attempt_spans
      WHERE experiment = $experiment AND coalesce(prompt_id, group_key) = $prompt) a
JOIN _named_spans s ON s.experiment = a.experiment AND s.run = a.run AND s.seq = a.seq
JOIN _runs x ON x.experiment = a.experiment AND x.run = a.run
LEFT JOIN _restores r ON r.experiment = a.experiment AND r.run = a.lost_by_run
LEFT JOIN reports c ON c.span_id = a.span_id AND c.run = a.lost_by_run
LEFT JOIN others o ON o.span_id = a.span_id
ORDER BY min(a.start_t) OVER (PARTITION BY a.group_key), a.group_key, a.generation_index, x.first_t, a.run, s.seq

-- step: group_lines
SELECT l.run, l.seq, l.t, l.event
FROM _lines l JOIN _runs x ON x.experiment = l.experiment AND x.run = l.run
WHERE l.experiment = $experiment AND l.group_key = $group AND l.event IN ('group_sealed', 'group_finalized', 'group_discarded')
ORDER BY x.first_t, l.run, l.seq

-- step: restore
SELECT r.restore_t, r.restore_seq, r.path, r.parent_run, r.snapshot_seq, r.published_t, r.cut_t, r.match, r.contradictions,
       p.last_t AS stop_t, p.last_t_seq AS parent_last_seq,
       coalesce(p.last_act_t > coalesce(r.first_dispatch_t, r.restore_t), false) AS went_on,
       r.first_dispatch_t, x.first_dispatch_seq, w.reported, w.counted, w.repeated, w.never_dispatched, w.unresolved,
       w.not_stopped, w.lost_attempts, coalesce(w.thrown_away_s, 0) AS thrown_away_s,
       coalesce(w.never_saved_s, 0) AS never_saved_s, coalesce(w.lost_s, 0) AS lost_s, coalesce(w.naive_s, 0) AS naive_s,
       (SELECT min(first_seq) FROM _reports o WHERE o.experiment = r.experiment AND o.run = r.run) AS first_report_seq,
       (SELECT max(first_seq) FROM _reports o WHERE o.experiment = r.experiment AND o.run = r.run) AS last_report_seq
FROM _restores r
JOIN _runs x ON x.experiment = r.experiment AND x.run = r.run
JOIN cut_time_waste w ON w.experiment = r.experiment AND w.run = r.run
LEFT JOIN _runs p ON p.experiment = r.experiment AND p.run = r.parent_run
WHERE r.experiment = $experiment AND r.run = $run

-- step: spans_of_restore
SELECT a.run, s.seq, a.group_key, a.prompt_id, a.generation_index, a.attempt, a.start_t, a.end_t, a.duration_s, a.end_kind,
       s.end_seq, a.lost_by_run, a.lost_how, a.cut_t, a.thrown_away_s, a.never_saved_s, x.last_t_seq AS run_last_seq,
       CASE a.lost_how WHEN 'reported' THEN c.first_seq END AS report_seq
FROM (SELECT *, split_part(span_id, ':', -1)::BIGINT AS seq FROM attempt_spans
      WHERE experiment = $experiment AND lost_by_run = $run) a
JOIN _named_spans s ON s.experiment = a.experiment AND s.run = a.run AND s.seq = a.seq
JOIN _runs x ON x.experiment = a.experiment AND x.run = a.run
LEFT JOIN (SELECT * FROM _reports WHERE experiment = $experiment AND run = $run) c
  ON c.experiment = a.experiment AND c.run = a.lost_by_run AND c.group_key = a.group_key
 AND c.generation_index IS NOT DISTINCT FROM a.generation_index AND c.attempt IS NOT DISTINCT FROM a.attempt
ORDER BY a.duration_s DESC, a.start_t, a.run, s.seq

-- step: places
SELECT e.run, e.seq, coalesce(f.path, 'file ' || e.file_id), e.line
FROM events e
SEMI JOIN (SELECT unnest($runs::VARCHAR[]) AS run, unnest($seqs::BIGINT[]) AS seq) k ON k.run = e.run AND k.seq = e.seq
LEFT JOIN trace_files f ON f.file_id = e.file_id
WHERE e.experiment = $experiment
