-- How long requests of a service's containers with a limit took, in the recordings that agents made while they were
-- stopped: longer than the length before, and no longer than this.
SELECT service, COALESCE(own_limit_cpus, 0) AS limit_cpus, container_no, microseconds,
  CAST(SUM(answered) AS BIGINT) AS times
FROM fleet_requests
GROUP BY service, COALESCE(own_limit_cpus, 0), container_no, microseconds
ORDER BY service, microseconds, limit_cpus, container_no
