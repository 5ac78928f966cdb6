package topology

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// ParseList reads the kernel's list format, as in "0-3,8": ids and ranges, with white space around the whole. A range
// may have groups: "0-7:2/4" is the first 2 of every 4, so 0,1,4,5. An empty text is the empty set. Every id is below
// [MaxCPUs]. Any other text is an error that quotes the wrong part. Source: bitmap_parselist, lib/bitmap-str.c.
func ParseList(s string) (cpuset.CPUSet, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return cpuset.New(), nil
	}
	in := make([]bool, MaxCPUs)
	for part := range strings.SplitSeq(s, ",") {
		if err := markPart(in, part); err != nil {
			return cpuset.CPUSet{}, fmt.Errorf("list %s: %w", quote(s), err)
		}
	}
	ids := make([]int, 0, MaxCPUs/8)
	for id, ok := range in {
		if ok {
			ids = append(ids, id)
		}
	}
	return cpuset.New(ids...), nil
}

// markPart marks the ids of one "A", "A-B" or "A-B:U/G".
func markPart(in []bool, part string) error {
	span, groups, grouped := strings.Cut(part, ":")
	low, high, ranged := strings.Cut(span, "-")
	first, err := parseID(low, len(in))
	if err != nil {
		return err
	}
	last := first
	if ranged {
		if last, err = parseID(high, len(in)); err != nil {
			return err
		}
	}
	if last < first {
		return fmt.Errorf("%s runs backwards: write the smaller number first", quote(part))
	}
	used, size := 1, 1
	if grouped {
		if used, size, err = parseGroups(groups, len(in)); err != nil {
			return err
		}
	}
	for id := first; id <= last; id++ {
		if (id-first)%size < used {
			in[id] = true
		}
	}
	return nil
}

// parseGroups reads the "U/G" of a grouped range: the first U of every G.
func parseGroups(s string, limit int) (used, size int, err error) {
	u, g, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, fmt.Errorf("%s is no used/size, as in 2/4", quote(s))
	}
	if used, err = parseID(u, limit); err != nil {
		return 0, 0, err
	}
	if size, err = parseID(g, limit); err != nil {
		return 0, 0, err
	}
	if used == 0 || used > size {
		return 0, 0, fmt.Errorf("%s: the first number must be from 1 to the second", quote(s))
	}
	return used, size, nil
}

func parseID(s string, limit int) (int, error) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, fmt.Errorf("%s is no number", quote(s))
		}
	}
	if s == "" {
		return 0, fmt.Errorf("a number is missing")
	}
	id, err := strconv.Atoi(s)
	if err != nil || id >= limit {
		return 0, fmt.Errorf("%s is above the largest number, %d", quote(s), limit-1)
	}
	return id, nil
}

// quote formats a file's content for an error: escaped, and never long.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
