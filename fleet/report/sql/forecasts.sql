-- What the periods before a remedy said of it: for each container that has rows before it and with it, the limit that
-- it got, for how much of the time it was stopped, and what other limits would have done before, a line each (or one
-- without a limit, where none would have stopped it). Only remedies that change how much CPU time a period has.
SELECT a.container_no, a.remedy, a.limit_cpus, a.stopped / a.seconds AS came, b.stopped / b.seconds AS was,
  b.seconds, b.known_seconds, b.candidate_from, v.step,
  CAST(SUM(v.stopped_microseconds) AS BIGINT) AS stopped_us,
  CAST(SUM(v.burst_stopped_microseconds) AS BIGINT) AS burst_stopped_us
FROM remedied a
JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy
LEFT JOIN fleet_candidates v ON v.container_no = a.before_no AND v.remedy = '' AND v.began_ms < a.since_ms
  AND v.candidate_seconds >= 60 AND v.step >= b.candidate_from AND v.stopped_high_seconds IS NOT NULL
GROUP BY a.container_no, a.remedy, a.limit_cpus, a.stopped, a.seconds, b.stopped, b.seconds, b.known_seconds,
  b.candidate_from, v.step
ORDER BY a.remedy, a.container_no, v.step
