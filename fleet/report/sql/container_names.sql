-- The containers that have sound rows, with a number each in the order of their names. Only names are put in order, not
-- all rows.
SELECT cluster, node, namespace, pod, container, cgroup,
  ROW_NUMBER() OVER (ORDER BY cluster, node, namespace, pod, container, cgroup) AS container_no
FROM (
  SELECT DISTINCT l.cluster, l.node, l.namespace, l.pod, l.container, COALESCE(l.cgroup, -1) AS cgroup
  FROM loaded l
  LEFT JOIN unsound u ON u.file_no = l.file_no AND u.file_row = l.file_row
  WHERE u.file_no IS NULL AND l.start_ms <= {{.LastStartMS}}
) d
