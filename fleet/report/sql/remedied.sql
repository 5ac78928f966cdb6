-- What each remedy came to in each container that has rows with it, since when, and which container's rows are those before
-- it: its own, or where its pod was made anew with a lower limit, one of before. With no other remedy that limit is one itself.
WITH treated AS (
  SELECT r.container_no, r.remedy AS in_force, r.began_ms, r.seconds, r.used_cpu_seconds, r.stopped_high_seconds, r.own_limit_cpus, r.allowed_cpus,
    r.period_microseconds,
    CASE WHEN r.remedy = '' THEN '{{.Limit}}' ELSE r.remedy END AS remedy,
    CASE WHEN s.container_no IS NULL THEN r.container_no ELSE s.before_no END AS before_no
  FROM fleet_rows r
  LEFT JOIN successors s ON s.container_no = r.container_no
  WHERE r.remedy <> '' OR (s.remedy_now = '' AND s.own_limit_cpus = r.own_limit_cpus)
)
SELECT container_no, remedy, in_force, before_no, MIN(began_ms) AS since_ms,
  MIN(CASE WHEN stopped_high_seconds IS NOT NULL THEN own_limit_cpus END) AS limit_cpus, MAX(period_microseconds) AS period_us,
  SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN seconds END) AS seconds, SUM(stopped_high_seconds) AS stopped,
  SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN used_cpu_seconds END) AS used,
  SUM(CASE WHEN stopped_high_seconds IS NOT NULL
    THEN seconds * CASE WHEN remedy = '{{.Pin}}' THEN CAST(allowed_cpus AS DOUBLE) ELSE own_limit_cpus END
  END) AS core_seconds
FROM treated
GROUP BY container_no, remedy, in_force, before_no
HAVING COUNT(stopped_high_seconds) > 0
