-- What the periods before a remedy said of it: for each container that has rows before it and with it, the limit that
-- it got, for how much of the time it was stopped, and what other limits would have done before, a line each (or one
-- without a limit, where none would have stopped it). Only remedies that change how much CPU time a period has. Of a burst that
-- came with a longer period (longer_us) the lines are of bursts in that period, with the time that they are known for.
WITH known AS (
  SELECT a.container_no, a.remedy, SUM(v.candidate_seconds) AS known_seconds, MAX(v.from_step) AS from_step
  FROM remedied a
  JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy AND b.longer_us > 0
  JOIN (
    SELECT container_no, file_no, file_row, began_ms, candidate_seconds, burst_period_microseconds, MIN(step) AS from_step
    FROM fleet_longbursts
    WHERE remedy = '' AND candidate_seconds >= 60 AND stopped_high_seconds IS NOT NULL
    GROUP BY container_no, file_no, file_row, began_ms, candidate_seconds, burst_period_microseconds
  ) v ON v.container_no = a.before_no AND v.began_ms < a.since_ms AND v.burst_period_microseconds = b.longer_us
  WHERE a.remedy = '{{.Burst}}'
  GROUP BY a.container_no, a.remedy
)
SELECT a.container_no, a.remedy, a.limit_cpus, a.stopped / a.seconds AS came, b.stopped / b.seconds AS was,
  b.seconds, b.known_seconds, b.candidate_from, CAST(0 AS BIGINT) AS longer_us, v.step,
  CAST(SUM(v.stopped_microseconds) AS BIGINT) AS stopped_us,
  CAST(SUM(v.burst_stopped_microseconds) AS BIGINT) AS burst_stopped_us
FROM remedied a
JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy AND (b.longer_us = 0 OR a.remedy <> '{{.Burst}}')
LEFT JOIN fleet_candidates v ON v.container_no = a.before_no AND v.remedy = '' AND v.began_ms < a.since_ms
  AND v.candidate_seconds >= 60 AND v.step >= b.candidate_from AND v.stopped_high_seconds IS NOT NULL
GROUP BY a.container_no, a.remedy, a.limit_cpus, a.stopped, a.seconds, b.stopped, b.seconds, b.known_seconds,
  b.candidate_from, v.step
UNION ALL
SELECT a.container_no, a.remedy, a.limit_cpus, a.stopped / a.seconds AS came, b.stopped / b.seconds AS was,
  b.seconds, k.known_seconds, k.from_step AS candidate_from, b.longer_us, v.step,
  CAST(SUM(v.stopped_microseconds) AS BIGINT) AS stopped_us,
  CAST(SUM(v.stopped_microseconds) AS BIGINT) AS burst_stopped_us
FROM remedied a
JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy AND b.longer_us > 0 AND a.remedy = '{{.Burst}}'
LEFT JOIN known k ON k.container_no = a.container_no AND k.remedy = a.remedy
LEFT JOIN fleet_longbursts v ON v.container_no = a.before_no AND v.remedy = '' AND v.began_ms < a.since_ms
  AND v.candidate_seconds >= 60 AND v.step >= k.from_step AND v.stopped_high_seconds IS NOT NULL
  AND v.burst_period_microseconds = b.longer_us
GROUP BY a.container_no, a.remedy, a.limit_cpus, a.stopped, a.seconds, b.stopped, b.seconds, k.known_seconds,
  k.from_step, b.longer_us, v.step
ORDER BY 2, 1, 10
