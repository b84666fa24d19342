-- What only Python runs between the steps of load.sql.
-- step: quick
-- The quick way: lines read with no proof for each. The step `proof` tells afterwards whether all of them were intact.
CREATE OR REPLACE TEMP VIEW _parsed AS SELECT *, NULL::VARCHAR AS whole, TRY(_known_fields(text)) AS j FROM _raw_lines;
INSERT INTO events
SELECT experiment, run, byte_offset, t, event, group_id, prompt_id, generation_index, attempt, reason, step, cut_time,
       path, weight_version, tokens, reward, NULL, file_id, line
FROM _typed WHERE sound;
-- step: proof
-- For each part of `_parts` (the text of a file from first_place on; the line it begins in may hold an event taken up
-- before it was complete): lines taken, and how many texts and numbers they hold. If the bytes have no backslash, no
-- bracket [, a brace at the beginning of each line, as many colons as values, quotes for just so many keys and texts, and
-- commas between just so many values, then nothing else can stand in them.
SELECT file_id, count(*),
       count(run) + count(event) + count(group_id) + count(prompt_id) + count(reason) + count(events.path),
       count(t) + count(generation_index) + count(attempt) + count(step) + count(cut_time) + count(weight_version)
           + count(tokens) + count(reward)
FROM events JOIN _parts USING (file_id)
WHERE line >= first_line AND seq & ((1::BIGINT << 44) - 1) >= first_place GROUP BY file_id;
-- step: unproven
DELETE FROM events USING _unproven
WHERE _unproven.file_id = events.file_id AND line >= first_line AND seq & ((1::BIGINT << 44) - 1) >= first_place;
-- step: salvaged
INSERT INTO events
SELECT experiment, run, seq, t, event, group_id, prompt_id, generation_index, attempt, reason, step, cut_time,
       path, weight_version, tokens, reward, extra::JSON, file_id, line
FROM _salvaged;
-- step: not_plain
SELECT file_id, line FROM _read WHERE NOT intact;
-- step: all_rest
SELECT file_id, line FROM _rest ORDER BY file_id, line;
-- step: suspects
SELECT file_id, line FROM _odd WHERE NOT whole_event ORDER BY file_id, line;
-- step: fragments
INSERT INTO rejects SELECT file_id, line, byte_offset, problem, text FROM _fragments;
-- step: hashes
DELETE FROM _blocks WHERE (file_id, block) IN (SELECT (file_id, block) FROM _hashes);
INSERT INTO _blocks SELECT file_id, block, bytes, hash FROM _hashes;
