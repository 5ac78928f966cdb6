-- What each container wants in each part of the day (UTC), also one that does not run now: for how long, the sums of
-- CPUs, of their squares and of their cubes over that time, and the most. Threads pile up behind a quota, so that where
-- one stopped the container its width counts, not what it wanted.
SELECT v.container_no, c.service, c.runs_now,
  CAST((MOD(v.start_ms, 86400000) - MOD(v.start_ms, {{.PhaseMS}})) / {{.PhaseMS}} AS INTEGER) AS phase,
  CAST(SUM(v.microseconds) AS DOUBLE) AS microseconds,
  SUM(CAST(v.cpus AS DOUBLE) * v.microseconds) AS cpus,
  SUM(CAST(v.cpus AS DOUBLE) * v.cpus * v.microseconds) AS squares,
  SUM(CAST(v.cpus AS DOUBLE) * v.cpus * v.cpus * v.microseconds) AS cubes,
  MAX(v.cpus) AS most
FROM fleet_levels v
JOIN containers c ON c.container_no = v.container_no
WHERE v.wanted_cpu_seconds IS NOT NULL AND v.microseconds > 0
  AND v.kind = CASE WHEN v.stopped_high_seconds > 0 THEN 'width' ELSE 'wanted' END
GROUP BY v.container_no, c.service, c.runs_now,
  CAST((MOD(v.start_ms, 86400000) - MOD(v.start_ms, {{.PhaseMS}})) / {{.PhaseMS}} AS INTEGER)
ORDER BY v.container_no, phase
