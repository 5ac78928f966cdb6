package accuracy

// known are the causes of misses that were found out, by draw and figure.
var known = map[uint64]map[Figure]string{
	3: {ThrottledTime: "a parent on the edge of its quota: throttled for a few ms in seconds, or not at all"},
}

// cause of a miss, as far as it was found out.
func cause(seed uint64, v Verdict) string {
	of := known[seed]
	if text, ok := of[v.Figure]; ok {
		return text
	}
	return "not found out"
}
