-- How long requests of a service took, in the recordings that agents made of it while it was stopped: longer than the length before, and no
-- longer than this.
SELECT service, request_us, CAST(SUM(answered) AS BIGINT) AS answered
FROM fleet_requests
GROUP BY service, request_us
ORDER BY service, request_us
