-- For how much of the time each host's containers of a service and a limit were stopped, and for how much of the time
-- for which they wanted a CPU they waited for one that others or they themselves held, at least.
SELECT service, COALESCE(own_limit_cpus, 0) AS limit_cpus, cluster, node,
  SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN seconds END) AS seconds,
  SUM(stopped_high_seconds) / SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN seconds END) AS stopped_share,
  CASE WHEN SUM(CASE WHEN waiting_contention_seconds IS NOT NULL THEN wanted_cpu_seconds END) > 0
    THEN SUM(waiting_contention_seconds)
      / SUM(CASE WHEN waiting_contention_seconds IS NOT NULL THEN wanted_cpu_seconds END) END AS contended_share
FROM fleet_rows
GROUP BY service, COALESCE(own_limit_cpus, 0), cluster, node
ORDER BY service, limit_cpus, cluster, node
