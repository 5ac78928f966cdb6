-- How long requests of a service took, in the recordings that agents made of it while it was stopped: longer than the
-- length before, and no longer than this.
SELECT service, microseconds, CAST(SUM(answered) AS BIGINT) AS times
FROM fleet_requests
GROUP BY service, microseconds
ORDER BY service, microseconds
