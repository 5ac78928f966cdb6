-- The rows that count, with the number of their container. Of a row that is there twice the one with the most rounds
-- counts: it is the newest. Where two programs observed a container at the same time, the row that saw most of the five
-- minutes counts. Only rows that are not alone in their five minutes are put in order.
WITH sound AS (
  SELECT l.file_no, l.file_row, l.start_ms, l.began_ms, l.seconds, l.samples, c.container_no
  FROM loaded l
  JOIN container_names c ON c.cluster = l.cluster AND c.node = l.node AND c.namespace = l.namespace AND c.pod = l.pod
    AND c.container = l.container AND c.cgroup = COALESCE(l.cgroup, -1)
  LEFT JOIN unsound u ON u.file_no = l.file_no AND u.file_row = l.file_row
  WHERE u.file_no IS NULL AND l.start_ms <= {{.LastStartMS}}
),
by_slot AS (
  SELECT container_no, start_ms, COUNT(*) AS times, MIN(file_no) AS file_no, MIN(file_row) AS file_row
  FROM sound
  GROUP BY container_no, start_ms
),
copies AS (
  SELECT s.*, ROW_NUMBER() OVER (
    PARTITION BY s.container_no, began_ms ORDER BY samples DESC, seconds DESC, s.file_no DESC, s.file_row DESC) AS copy_no
  FROM sound s
  JOIN by_slot b ON b.container_no = s.container_no AND b.start_ms = s.start_ms AND b.times > 1
),
neighbours AS (
  SELECT c.*,
    CASE WHEN LAG(began_ms + 1000 * seconds) OVER (PARTITION BY container_no, start_ms ORDER BY began_ms) > began_ms + 1000
      THEN 1 ELSE 0 END AS begins_early
  FROM copies c
  WHERE copy_no = 1
),
slots AS (
  SELECT n.*, MAX(begins_early) OVER (PARTITION BY container_no, start_ms) AS slot_overlaps,
    ROW_NUMBER() OVER (PARTITION BY container_no, start_ms ORDER BY seconds DESC, began_ms DESC) AS most_no
  FROM neighbours n
)
SELECT file_no, file_row, container_no FROM by_slot WHERE times = 1
UNION ALL
SELECT file_no, file_row, container_no FROM slots WHERE slot_overlaps = 0 OR most_no = 1
