-- What came of each remedy: stopped share and limit of the containers that have rows before it and rows with it, and how many of
-- these do less than half of the work since, which are not compared.
SELECT a.remedy, SUM(1 - b.does_less) AS containers, SUM(b.does_less) AS do_less,
  SUM(CASE WHEN b.does_less = 0 THEN b.stopped END) / SUM(CASE WHEN b.does_less = 0 THEN b.seconds END) AS stopped_share_before,
  SUM(CASE WHEN b.does_less = 0 THEN a.stopped END) / SUM(CASE WHEN b.does_less = 0 THEN a.seconds END) AS stopped_share_after,
  SUM(b.core_seconds / b.seconds) AS cores_before, SUM(a.core_seconds / a.seconds) AS cores_after
FROM remedied a
JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy
GROUP BY a.remedy
ORDER BY a.remedy
