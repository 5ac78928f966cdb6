-- How long threads of a role took from wake-up to sleep, in the recordings that agents made of a service while it was
-- stopped: longer than the length before, and no longer than this.
SELECT service, role, microseconds, CAST(SUM(runs) AS BIGINT) AS times
FROM fleet_responses
GROUP BY service, role, microseconds
ORDER BY service, role, microseconds
