package accuracy

// known are the causes of misses that were found out, by draw and figure; "": any
// figure of the draw.
var known = map[uint64]map[Figure]string{
	3: {ThrottledTime: "a parent on the edge of its quota: throttled for a few ms in seconds, or not at all"},
	4: {"": siblings},
	7: {"": siblings},
}

const siblings = "presumably: siblings beyond their parent's quota; the kernel shares by load averages, which throttling freezes, the simulator by numbers of threads"

// cause of a miss, as far as it was found out.
func cause(seed uint64, v Verdict) string {
	of := known[seed]
	if text, ok := of[v.Figure]; ok {
		return text
	}
	if text, ok := of[""]; ok {
		return text
	}
	return "not found out"
}
