-- How much there is: rows that were read, that are of later, that are not sound, that are left of copies, and that
-- count, and from when to when.
SELECT
  (SELECT COUNT(*) FROM loaded) AS rows_read,
  (SELECT COUNT(*) FROM unsound) AS rows_unsound,
  (SELECT COUNT(*) FROM loaded WHERE start_ms > {{.LastStartMS}}) AS rows_later,
  (SELECT COUNT(*) FROM (
    SELECT DISTINCT l.cluster, l.node, l.namespace, l.pod, l.container, l.cgroup, l.began_ms
    FROM loaded l
    LEFT JOIN unsound u ON u.file_no = l.file_no AND u.file_row = l.file_row
    WHERE u.file_no IS NULL AND l.start_ms <= {{.LastStartMS}}
  ) d) AS rows_once,
  (SELECT COUNT(*) FROM fleet_rows) AS rows_used,
  (SELECT MIN(began_ms) FROM fleet_rows) AS first_ms,
  (SELECT MAX(end_ms) FROM fleet_hosts) AS last_ms,
  (SELECT MAX(now_ms) FROM fleet_hosts) AS now_ms
