-- Services by runnable threads per reserved core while any is runnable, by stopped time, by whose quota stops them, and
-- by how much of the time for which their threads wanted a CPU they waited for one that others or they themselves held:
-- at least, and at most.
WITH now_by_service AS (
  SELECT service, CAST(SUM(runs_now) AS BIGINT) AS containers,
    SUM(CASE WHEN runs_now = 1 THEN cores_now END) AS cores_now
  FROM containers
  GROUP BY service
),
hosts AS (
  SELECT service, COUNT(*) AS hosts FROM (SELECT DISTINCT service, cluster, node FROM containers WHERE runs_now = 1) d
    GROUP BY service
),
stops AS (
  SELECT service,
    SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN stopped_low_seconds END)
      / SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN seconds END) AS stopped_low,
    SUM(stopped_high_seconds) / SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN seconds END) AS stopped_high,
    SUM(used_cpu_seconds) / SUM(CASE WHEN used_cpu_seconds IS NOT NULL THEN seconds END) AS used_cpus,
    SUM(throttled_own_seconds) AS throttled_own, SUM(throttled_pod_seconds) AS throttled_pod,
    SUM(throttled_slice_seconds) AS throttled_slice, SUM(throttled_inside_seconds) AS throttled_inside,
    SUM(waiting_contention_seconds) AS contention,
    SUM(waiting_contention_seconds + waiting_unclear_seconds) AS contention_at_most,
    SUM(CASE WHEN waiting_contention_seconds IS NOT NULL THEN wanted_cpu_seconds END) AS wanted
  FROM fleet_rows
  GROUP BY service
),
threads AS (
  SELECT service, SUM(CAST(cpus AS DOUBLE) * microseconds / own_limit_cpus) / SUM(microseconds) AS runnable_per_core
  FROM fleet_levels
  WHERE kind = 'wanted' AND cpus > 0 AND microseconds > 0 AND own_limit_cpus IS NOT NULL
  GROUP BY service
)
SELECT n.service AS name, n.containers, COALESCE(h.hosts, 0) AS hosts, n.cores_now, t.runnable_per_core,
  s.stopped_low AS stopped_share_low, s.stopped_high AS stopped_share, s.used_cpus,
  s.throttled_own, s.throttled_pod, s.throttled_slice, s.throttled_inside,
  CASE WHEN s.wanted > 0 THEN s.contention / s.wanted END AS contended_share_low,
  CASE WHEN s.wanted > 0 THEN s.contention_at_most / s.wanted END AS contended_share
FROM now_by_service n
LEFT JOIN hosts h ON h.service = n.service
JOIN stops s ON s.service = n.service
LEFT JOIN threads t ON t.service = n.service
ORDER BY n.service
