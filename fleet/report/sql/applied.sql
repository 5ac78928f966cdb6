-- What came of each remedy: stopped share and limit of the containers that have rows without it and rows with it.
WITH parts AS (
  SELECT container_no, remedy, SUM(seconds) AS seconds, SUM(stopped_high_seconds) AS stopped,
    SUM(seconds * CASE WHEN remedy = 'pin' THEN CAST(allowed_cpus AS DOUBLE) ELSE own_limit_cpus END) AS core_seconds
  FROM fleet_rows
  WHERE stopped_high_seconds IS NOT NULL
  GROUP BY container_no, remedy
)
SELECT a.remedy, COUNT(*) AS containers, SUM(b.stopped) / SUM(b.seconds) AS stopped_before, SUM(a.stopped) / SUM(a.seconds) AS stopped_after,
  SUM(b.core_seconds / b.seconds) AS cores_before, SUM(a.core_seconds / a.seconds) AS cores_after
FROM parts a
JOIN parts b ON b.container_no = a.container_no AND b.remedy = ''
WHERE a.remedy <> ''
GROUP BY a.remedy
ORDER BY a.remedy
