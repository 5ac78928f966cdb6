-- One line per container: what it is now, and what its rows with the limit, its period, the remedy and the CPUs of now add up to.
-- It runs now if its rows are of before and after the moment at which is counted what runs, and its host is not gone. Of a
-- host that is gone it is told what ran to its end, but for a moment.
WITH newest AS (
  SELECT container_no, MIN(began_ms) AS first_ms, MAX(start_ms) AS start_ms FROM fleet_rows GROUP BY container_no
),
ranked AS (
  SELECT r.container_no, r.cluster, r.node, r.namespace, r.pod, r.container, r.service, r.remedy, r.limit_cpus,
    r.own_limit_cpus, r.request_cpus, r.allowed_cpus, r.period_microseconds, r.began_ms, r.seconds, n.first_ms,
    ROW_NUMBER() OVER (PARTITION BY r.container_no ORDER BY r.began_ms DESC) AS last_no
  FROM newest n
  JOIN fleet_rows r ON r.container_no = n.container_no AND r.start_ms = n.start_ms
),
latest AS (
  SELECT r.container_no, r.cluster, r.node, r.namespace, r.pod, r.container, r.service, r.remedy, r.limit_cpus,
    r.own_limit_cpus, r.request_cpus, r.allowed_cpus, r.period_microseconds,
    CASE WHEN h.gone = 0 AND r.first_ms <= h.counted_ms AND r.began_ms + 1000 * r.seconds >= h.counted_ms THEN 1 ELSE 0 END
      AS runs_now,
    CASE WHEN h.gone = 1 AND r.began_ms + 1000 * r.seconds >= h.until_ms - {{.EndedMS}} THEN 1 ELSE 0 END AS gone,
    CASE WHEN r.remedy = '{{.Pin}}' THEN CAST(r.allowed_cpus AS DOUBLE)
      WHEN r.own_limit_cpus IS NOT NULL THEN r.own_limit_cpus
      ELSE r.request_cpus END AS cores_now
  FROM ranked r
  JOIN fleet_hosts h ON h.cluster = r.cluster AND h.node = r.node
  WHERE r.last_no = 1
)
SELECT l.container_no, l.cluster, l.node, l.namespace, l.pod, l.container, l.service, l.remedy, l.limit_cpus,
  l.own_limit_cpus, l.request_cpus, l.allowed_cpus, l.period_microseconds, l.runs_now, l.gone, l.cores_now,
  MIN(r.began_ms) AS first_ms, CAST(MAX(r.began_ms + 1000 * r.seconds) AS BIGINT) AS until_ms,
  SUM(CASE WHEN r.wanted_cpu_seconds IS NOT NULL THEN r.seconds END) AS measured_seconds,
  SUM(CASE WHEN r.wanted_cpu_seconds IS NOT NULL THEN r.stopped_high_seconds END) AS stopped_high_seconds,
  MIN(CASE WHEN r.samples = 1 AND r.seconds >= 300 THEN 1 ELSE 0 END) AS imported,
  MAX(CASE WHEN r.seconds >= 60 THEN r.used_cpu_seconds / r.seconds END) AS widest_mean_cpus,
  SUM(CASE WHEN r.candidate_seconds >= 60 THEN r.candidate_seconds END) AS candidate_seconds,
  SUM(CASE WHEN r.candidate_seconds >= 60 THEN 1000000 * r.candidate_seconds
    / r.period_microseconds END) AS candidate_periods,
  MAX(CASE WHEN r.candidate_seconds >= 60 THEN r.candidate_from END) AS candidate_from
FROM latest l
JOIN fleet_rows r ON r.container_no = l.container_no AND {{asNow "r" "l"}}
GROUP BY l.container_no, l.cluster, l.node, l.namespace, l.pod, l.container, l.service, l.remedy, l.limit_cpus,
  l.own_limit_cpus, l.request_cpus, l.allowed_cpus, l.period_microseconds, l.runs_now, l.gone, l.cores_now
