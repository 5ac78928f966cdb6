-- For how long each container with each limit was observed and stopped, and for how much of the time for which it wanted a
-- CPU it waited for one that others or it itself held, at least.
SELECT service, COALESCE(own_limit_cpus, 0) AS limit_cpus, container_no, cluster, node,
  SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN seconds END) AS seconds,
  SUM(stopped_high_seconds) AS stopped_seconds,
  SUM(CASE WHEN waiting_contention_seconds IS NOT NULL THEN wanted_cpu_seconds END) AS wanted_seconds,
  SUM(waiting_contention_seconds) AS contended_seconds
FROM fleet_rows
GROUP BY service, COALESCE(own_limit_cpus, 0), container_no, cluster, node
ORDER BY service, limit_cpus, cluster, node, container_no
