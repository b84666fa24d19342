-- The tables a load fills. `events` holds what the traces say; names that begin with `_` are internal.
-- One experiment never touches another: every table bears `experiment`.

CREATE TABLE IF NOT EXISTS _about(name VARCHAR PRIMARY KEY, value VARCHAR);
COMMENT ON TABLE _about IS 'what this database is: format (a number), package version that made it';

CREATE TABLE IF NOT EXISTS trace_files(
    file_id INTEGER, path VARCHAR, experiment VARCHAR, identity VARCHAR, bytes BIGINT, events BIGINT, rejects BIGINT,
    pending BIGINT, warnings VARCHAR, lines BIGINT, non_finite_values BIGINT, replaced_utf8 BIGINT, salvaged BIGINT,
    disk_bytes BIGINT, modified_ns BIGINT);
COMMENT ON TABLE trace_files IS 'one row per trace file loaded';
COMMENT ON COLUMN trace_files.file_id IS 'number of the file in this database';
COMMENT ON COLUMN trace_files.path IS 'where the file was found at the last load';
COMMENT ON COLUMN trace_files.experiment IS 'experiment its events belong to';
COMMENT ON COLUMN trace_files.identity IS 'hash of its first complete event: what the file is known by';
COMMENT ON COLUMN trace_files.bytes IS 'bytes taken up so far (of the text, after decompression)';
COMMENT ON COLUMN trace_files.events IS 'events taken from it';
COMMENT ON COLUMN trace_files.rejects IS 'fragments that are no event';
COMMENT ON COLUMN trace_files.pending IS '1 where the last line is not complete yet, else 0';
COMMENT ON COLUMN trace_files.warnings IS 'what was odd about the file, NULL where nothing was';
COMMENT ON COLUMN trace_files.lines IS 'complete lines taken up so far';
COMMENT ON COLUMN trace_files.non_finite_values IS 'NaN and infinities outside t, kept as NULL';
COMMENT ON COLUMN trace_files.replaced_utf8 IS 'events whose invalid UTF-8 was replaced';
COMMENT ON COLUMN trace_files.salvaged IS 'events recovered from lines that are not one valid object';
COMMENT ON COLUMN trace_files.disk_bytes IS 'size of the file on disk when it was last taken up';
COMMENT ON COLUMN trace_files.modified_ns IS 'when the file was last changed then, nanoseconds since the epoch; NULL where just now';

CREATE TABLE IF NOT EXISTS events(
    experiment VARCHAR, run VARCHAR, seq BIGINT, t DOUBLE, event VARCHAR, group_id VARCHAR, prompt_id VARCHAR,
    generation_index INTEGER, attempt INTEGER, reason VARCHAR, step BIGINT, cut_time DOUBLE, path VARCHAR,
    weight_version BIGINT, tokens BIGINT, reward DOUBLE, extra JSON, file_id INTEGER, line BIGINT);
COMMENT ON TABLE events IS 'one row per event of the traces';
COMMENT ON COLUMN events.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN events.run IS 'process that wrote the line';
COMMENT ON COLUMN events.seq IS 'order of the lines within a run';
COMMENT ON COLUMN events.t IS 'moment of the event, seconds since the epoch';
COMMENT ON COLUMN events.event IS 'what happened';
COMMENT ON COLUMN events.group_id IS 'group of siblings, where the line names it';
COMMENT ON COLUMN events.prompt_id IS 'prompt, where the line names it';
COMMENT ON COLUMN events.generation_index IS 'sibling within its group, from 0';
COMMENT ON COLUMN events.attempt IS 'attempt at the sibling, from 0';
COMMENT ON COLUMN events.reason IS 'why an attempt was abandoned, as written';
COMMENT ON COLUMN events.step IS 'trainer step';
COMMENT ON COLUMN events.cut_time IS 'moment a snapshot holds, seconds since the epoch';
COMMENT ON COLUMN events.path IS 'snapshot or checkpoint named';
COMMENT ON COLUMN events.weight_version IS 'weights in use';
COMMENT ON COLUMN events.tokens IS 'tokens generated';
COMMENT ON COLUMN events.reward IS 'reward given';
COMMENT ON COLUMN events.extra IS 'JSON object of every field not named here, NULL where there is none';
COMMENT ON COLUMN events.file_id IS 'file it came from';
COMMENT ON COLUMN events.line IS 'line of that file, from 1';

CREATE TABLE IF NOT EXISTS rejects(file_id INTEGER, line BIGINT, byte_offset BIGINT, problem VARCHAR, text VARCHAR);
COMMENT ON TABLE rejects IS 'one row per fragment of a file that is no event';
COMMENT ON COLUMN rejects.file_id IS 'file it stands in';
COMMENT ON COLUMN rejects.line IS 'line of that file, from 1';
COMMENT ON COLUMN rejects.byte_offset IS 'where in the file it begins, from 0 (of the text, after decompression)';
COMMENT ON COLUMN rejects.problem IS 'why it is no event';
COMMENT ON COLUMN rejects.text IS 'the fragment, cut at 1,000 characters';

CREATE TABLE IF NOT EXISTS labels(experiment VARCHAR, key VARCHAR, value VARCHAR, PRIMARY KEY (experiment, key));
COMMENT ON TABLE labels IS 'one row per experiment and key';
COMMENT ON COLUMN labels.experiment IS 'experiment the label is of';
COMMENT ON COLUMN labels.key IS 'what is labelled: interval_s, say';
COMMENT ON COLUMN labels.value IS 'the label, as text';

CREATE TABLE IF NOT EXISTS _touched(experiment VARCHAR);
COMMENT ON TABLE _touched IS 'experiments whose derived tables are being built anew; empty between loads';

CREATE TABLE IF NOT EXISTS _portion(run_no INTEGER);
COMMENT ON TABLE _portion IS 'of these the runs whose fates are being derived: whole families, so many as the memory holds';
