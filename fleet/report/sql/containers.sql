-- One line per container: what it is now, and what its rows with the limit, the remedy and the CPUs of now add up to. Now is the last
-- ten minutes of its host.
WITH ranked AS (
  SELECT r.*,
    ROW_NUMBER() OVER (PARTITION BY container_no ORDER BY start_ms DESC, began_ms DESC) AS last_no,
    MAX(start_ms) OVER (PARTITION BY cluster, node) AS host_last_ms
  FROM fleet_rows r
),
latest AS (
  SELECT container_no, cluster, node, namespace, pod, container, service, remedy, limit_cpus, own_limit_cpus, request_cpus, allowed_cpus,
    CASE WHEN start_ms >= host_last_ms - 300000 THEN 1 ELSE 0 END AS runs_now,
    CASE WHEN remedy = 'pin' THEN CAST(allowed_cpus AS DOUBLE)
      WHEN own_limit_cpus IS NOT NULL THEN own_limit_cpus
      ELSE request_cpus END AS cores_now
  FROM ranked
  WHERE last_no = 1
)
SELECT l.container_no, l.cluster, l.node, l.namespace, l.pod, l.container, l.service, l.remedy, l.limit_cpus, l.own_limit_cpus,
  l.request_cpus, l.allowed_cpus, l.runs_now, l.cores_now,
  SUM(CASE WHEN r.wanted_cpu_seconds IS NOT NULL THEN r.seconds END) AS measured_seconds,
  SUM(CASE WHEN r.wanted_cpu_seconds IS NOT NULL THEN r.stopped_high_seconds END) AS stopped_high_seconds,
  MAX(CASE WHEN r.seconds >= 60 THEN r.used_cpu_seconds / r.seconds END) AS widest_mean_cpus,
  SUM(CASE WHEN r.candidate_seconds >= 60 THEN r.candidate_seconds END) AS candidate_seconds,
  SUM(CASE WHEN r.candidate_seconds >= 60 THEN 1000000 * r.candidate_seconds / r.period_us END) AS candidate_periods,
  MAX(CASE WHEN r.candidate_seconds >= 60 THEN r.candidate_from END) AS candidate_from
FROM latest l
JOIN fleet_rows r ON r.container_no = l.container_no AND r.remedy = l.remedy
  AND COALESCE(r.own_limit_cpus, 0) = COALESCE(l.own_limit_cpus, 0) AND COALESCE(r.allowed_cpus, 0) = COALESCE(l.allowed_cpus, 0)
GROUP BY l.container_no, l.cluster, l.node, l.namespace, l.pod, l.container, l.service, l.remedy, l.limit_cpus, l.own_limit_cpus,
  l.request_cpus, l.allowed_cpus, l.runs_now, l.cores_now
