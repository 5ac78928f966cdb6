-- What each remedy came to in each container that has rows with it, and since when.
SELECT container_no, remedy, MIN(began_ms) AS since_ms,
  MIN(CASE WHEN stopped_high_seconds IS NOT NULL THEN own_limit_cpus END) AS limit_cpus,
  SUM(CASE WHEN stopped_high_seconds IS NOT NULL THEN seconds END) AS seconds, SUM(stopped_high_seconds) AS stopped,
  SUM(CASE WHEN stopped_high_seconds IS NOT NULL
    THEN seconds * CASE WHEN remedy = '{{.Pin}}' THEN CAST(allowed_cpus AS DOUBLE) ELSE own_limit_cpus END
  END) AS core_seconds
FROM fleet_rows
WHERE remedy <> ''
GROUP BY container_no, remedy
HAVING COUNT(stopped_high_seconds) > 0
