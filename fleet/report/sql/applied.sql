-- What came of each remedy: stopped share and limit of the containers that have rows before it and rows with it.
SELECT a.remedy, COUNT(*) AS containers, SUM(b.stopped) / SUM(b.seconds) AS stopped_share_before,
  SUM(a.stopped) / SUM(a.seconds) AS stopped_share_after,
  SUM(b.core_seconds / b.seconds) AS cores_before, SUM(a.core_seconds / a.seconds) AS cores_after
FROM remedied a
JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy
GROUP BY a.remedy
ORDER BY a.remedy
