-- What bursts in longer periods would have done to each container, with the limit, the remedy and the CPUs of now: stopped time
-- in all, and the longest of the rows' delays. known_seconds is for how much of the time that is known.
WITH parts AS (
  SELECT c.container_no, v.file_no, v.file_row, v.burst_period_microseconds, v.candidate_seconds, MIN(v.step) AS from_step
  FROM containers c
  JOIN fleet_longbursts v ON v.container_no = c.container_no AND {{asNow "v" "c"}}
  WHERE v.candidate_seconds >= 60
  GROUP BY c.container_no, v.file_no, v.file_row, v.burst_period_microseconds, v.candidate_seconds
),
known AS (
  SELECT container_no, burst_period_microseconds, SUM(candidate_seconds) AS known_seconds, MAX(from_step) AS from_step
  FROM parts
  GROUP BY container_no, burst_period_microseconds
)
SELECT k.container_no, k.burst_period_microseconds AS period_us, k.known_seconds, k.from_step, v.step,
  CAST(SUM(v.stopped_microseconds) AS BIGINT) AS stopped_us, MAX(v.delay_microseconds) AS delay_us
FROM known k
JOIN parts p ON p.container_no = k.container_no AND p.burst_period_microseconds = k.burst_period_microseconds
JOIN fleet_longbursts v ON v.file_no = p.file_no AND v.file_row = p.file_row
  AND v.burst_period_microseconds = p.burst_period_microseconds
WHERE v.step >= k.from_step
GROUP BY k.container_no, k.burst_period_microseconds, k.known_seconds, k.from_step, v.step
ORDER BY k.container_no, k.burst_period_microseconds, v.step
