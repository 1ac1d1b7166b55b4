-- Every statement on a journal, under its name.

-- name: add_run
INSERT INTO runs (run_id) VALUES (:run_id) ON CONFLICT DO NOTHING

-- name: find_run
SELECT run FROM runs WHERE run_id = :run_id

-- name: latest_run
SELECT runs.run_id FROM lives JOIN runs USING (run) ORDER BY life DESC LIMIT 1

-- name: add_life
INSERT INTO lives (run, started_at, pid, host, header, sum) VALUES (:run, :started_at, :pid, :host, :header, :sum)

-- name: end_life
UPDATE lives SET ended_at = :ended_at, stop_reason = :stop_reason WHERE life = :life

-- name: latest_life
SELECT life, started_at, ended_at, stop_reason, pid, host, header, sum FROM lives WHERE run = :run ORDER BY life DESC LIMIT 1

-- name: start_task
INSERT INTO tasks (run, name, place, fingerprint, life, cut, sum)
VALUES (:run, :name, :place, :fingerprint, :life, 1, :sum)
ON CONFLICT (run, name) DO UPDATE SET
    place = excluded.place, fingerprint = excluded.fingerprint, life = excluded.life, cut = 1, sum = excluded.sum,
    status = NULL, stop_reason = NULL, error_kind = NULL, team = NULL, attempts = 0, duration = 0, finished_at = NULL,
    prompt_tokens = 0, completion_tokens = 0, calls = 0, cost = NULL
RETURNING task

-- name: settle_task
INSERT INTO tasks (
    run, name, place, fingerprint, life, status, cut, stop_reason, error_kind, team, attempts, duration, finished_at,
    prompt_tokens, completion_tokens, calls, cost, sum
) VALUES (
    :run, :name, :place, :fingerprint, :life, :status, :cut, :stop_reason, :error_kind, :team, :attempts, :duration,
    :finished_at, :prompt_tokens, :completion_tokens, :calls, :cost, :sum
) ON CONFLICT (run, name) DO UPDATE SET
    place = excluded.place, fingerprint = excluded.fingerprint, life = excluded.life, status = excluded.status,
    cut = excluded.cut, stop_reason = excluded.stop_reason, error_kind = excluded.error_kind, team = excluded.team,
    attempts = excluded.attempts, duration = excluded.duration, finished_at = excluded.finished_at,
    prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens, calls = excluded.calls,
    cost = excluded.cost, sum = excluded.sum
RETURNING task

-- name: find_task
SELECT task, status FROM tasks WHERE run = :run AND name = :name

-- name: task_goes_on
UPDATE tasks SET cut = :cut, sum = :sum WHERE task = :task

-- name: put_result
INSERT OR REPLACE INTO results (task, body, sum) VALUES (:task, :body, :sum)

-- name: drop_result
DELETE FROM results WHERE task = :task

-- name: tasks_of_run
SELECT
    task, name, place, fingerprint, status, cut, stop_reason, error_kind, team, attempts, duration, finished_at,
    prompt_tokens, completion_tokens, calls, cost, tasks.sum AS sum
FROM tasks WHERE run = :run AND task > :after ORDER BY task LIMIT :count

-- name: task_of_run
SELECT
    task, name, place, fingerprint, status, cut, stop_reason, error_kind, team, attempts, duration, finished_at,
    prompt_tokens, completion_tokens, calls, cost, tasks.sum AS sum
FROM tasks WHERE run = :run AND name = :name

-- name: read_result
SELECT body, sum FROM results WHERE task = :task

-- name: start_attempt
INSERT OR REPLACE INTO attempts (task, life, number, started_at) VALUES (:task, :life, :number, :started_at)

-- name: end_attempt
UPDATE attempts SET ended_at = :ended_at, cut = :cut WHERE task = :task AND life = :life AND number = :number

-- name: attempts_of_task
SELECT life, number, started_at, ended_at, cut FROM attempts WHERE task = :task ORDER BY life, number

-- name: add_call
INSERT INTO calls (task, life, attempt, current, digest, about, body, sum)
VALUES (:task, :life, :attempt, 1, :digest, :about, :body, :sum)

-- name: read_call
SELECT digest, about, body, sum FROM calls WHERE call = :call

-- name: current_calls
SELECT tasks.name, tasks.fingerprint, calls.call, calls.digest
FROM tasks JOIN calls USING (task) WHERE tasks.run = :run AND calls.current = 1 ORDER BY calls.call

-- name: calls_of_task
SELECT call, life, attempt, current, digest, about, body, sum FROM calls WHERE task = :task ORDER BY call

-- name: count_calls
SELECT count(*) AS calls FROM calls WHERE task = :task

-- name: retire_calls
UPDATE calls SET current = 0 WHERE task = :task AND current = 1

-- name: delete_calls
DELETE FROM calls WHERE task = :task

-- name: retire_call
UPDATE calls SET current = 0 WHERE call = :call

-- name: delete_call
DELETE FROM calls WHERE call = :call

-- name: find_receipt
SELECT value, sum FROM receipts WHERE task = :task AND key = :key

-- name: put_receipt
INSERT OR REPLACE INTO receipts (task, key, life, begun_at, value, sum) VALUES (:task, :key, :life, :at, :value, :sum)

-- name: drop_intent
DELETE FROM receipts WHERE task = :task AND key = :key AND value IS NULL

-- name: add_event
INSERT INTO events (life, at, type, body, sum) VALUES (:life, :at, :type, :body, :sum)

-- name: events_of_run
SELECT events.event, events.body, events.sum FROM lives JOIN events USING (life)
WHERE lives.run = :run AND events.event > :after ORDER BY events.event LIMIT :count

-- name: durations
SELECT name, team, duration FROM tasks WHERE status = 'succeeded' AND (:run IS NULL OR run = :run)
ORDER BY life, finished_at, task

-- name: all_runs
SELECT
    runs.run, runs.run_id, count(lives.life) AS lives, min(lives.started_at) AS started_at, max(lives.life) AS last_life
FROM runs JOIN lives USING (run) GROUP BY runs.run ORDER BY last_life

-- name: counts
SELECT
    status, count(*) AS tasks, sum(prompt_tokens + completion_tokens) AS tokens, sum(calls) AS calls,
    sum(cost) AS cost, sum(calls > 0 AND cost IS NULL) AS unpriced
FROM tasks WHERE run = :run GROUP BY status

-- name: some_tasks
SELECT task FROM tasks WHERE run = :run LIMIT :count

-- name: delete_task
DELETE FROM tasks WHERE task = :task

-- name: some_events
SELECT event FROM lives JOIN events USING (life) WHERE lives.run = :run LIMIT :count

-- name: delete_event
DELETE FROM events WHERE event = :event

-- name: delete_run
DELETE FROM runs WHERE run = :run
