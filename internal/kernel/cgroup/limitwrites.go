package cgroup

// LimitWrites returns the writes that change one cgroup from cur to want, nil if nothing differs. The kernel accepts
// each step in this order, as far as this cgroup alone is concerned.
//
// The rules (kernel/sched/core.c): with a quota, burst <= quota. So a burst falls before the quota and rises after it.
// v2 takes quota and period in one write. v1 takes one at a time, and the ratio between the two writes must neither
// exceed the parent's nor fall below a child's. So the first write is the one that keeps the ratio between the old and
// the new one. Where neither does (say 50/100 ms to 100/200 ms), it is the one after which the ratio is below both: a writer that is
// held up in between gives away nothing. limitedBelow: a cgroup below has a quota, so that the kernel refuses a smaller ratio. Then the
// quota is lifted between two writes, which the kernel always accepts, since the cgroup then inherits the parent's; those below keep
// theirs.
func LimitWrites(v Version, cur, want Limit, limitedBelow bool) []FileValue {
	var writes []FileValue
	burst := FileValue{fileBurst, micros(want.Burst)}
	if v == V2 {
		burst.File = fileMaxBurst
	}
	if want.Burst < cur.Burst {
		writes = append(writes, burst)
	}
	if v == V2 {
		writes = append(writes, maxWrites(cur, want)...)
	} else {
		writes = append(writes, quotaPeriodWrites(cur, want, limitedBelow)...)
	}
	if want.Burst > cur.Burst {
		writes = append(writes, burst)
	}
	return writes
}

func sameQuota(a, b Limit) bool { return a.Quota == b.Quota || !a.Limited() && !b.Limited() }

func maxWrites(cur, want Limit) []FileValue {
	if sameQuota(cur, want) && cur.Period == want.Period {
		return nil
	}
	quota := "max"
	if want.Limited() {
		quota = micros(want.Quota)
	}
	return []FileValue{{fileMax, quota + " " + micros(want.Period)}}
}

func quotaPeriodWrites(cur, want Limit, limitedBelow bool) []FileValue {
	off := FileValue{fileQuota, "-1"}
	quota, period := off, FileValue{filePeriod, micros(want.Period)}
	if want.Limited() {
		quota.Value = micros(want.Quota)
	}
	switch {
	case sameQuota(cur, want) && cur.Period == want.Period:
		return nil
	case cur.Period == want.Period:
		return []FileValue{quota}
	case sameQuota(cur, want):
		return []FileValue{period}
	case !want.Limited():
		return []FileValue{quota, period}
	case !cur.Limited():
		return []FileValue{period, quota}
	case between(Limit{Quota: want.Quota, Period: cur.Period}, cur, want):
		return []FileValue{quota, period}
	case between(Limit{Quota: cur.Quota, Period: want.Period}, cur, want):
		return []FileValue{period, quota}
	case limitedBelow:
		return []FileValue{off, period, quota}
	case want.Period > cur.Period:
		return []FileValue{period, quota}
	}
	return []FileValue{quota, period}
}

// between reports whether the ratio of mid lies between those of a and b, ends included.
func between(mid, a, b Limit) bool {
	m, _ := mid.Bound()
	x, _ := a.Bound()
	y, _ := b.Bound()
	return min(x, y) <= m && m <= max(x, y)
}
