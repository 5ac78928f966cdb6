package accuracy

// known are the causes of misses that were found out, by draw and figure.
var known = map[uint64]map[Figure]string{
	0:  {Use: siblings},
	3:  {ThrottledTime: "a parent on the edge of its quota: throttled for a few ms in seconds, or not at all", P50: between},
	5:  {P50: between},
	7:  {ThrottledTime: siblings, P95: early},
	16: {Use: siblings, P95: siblings},
	18: {ThrottledPeriods: "quota and parent's quota are 14.4 and 16.4 ms in 100: which of them is gone first is chance, as the real runs' own range shows"},
	26: {Use: siblings},
	27: {P95: early},
	28: {Use: "0.3 % above the range of the real runs: threads that begin at the same moment find their CPUs a little later than here"},
	32: {ThrottledTime: "the sleeper lives off the 1 ms of quota that its CPU keeps, at 80 us a sleep: whether that is gone before the period is, is a matter of a sleep or two"},
	34: {P95: early},
}

// Causes of several misses.
const (
	siblings = "who of two cgroups below a parent that stops both runs first when they come back: the shares between them are off by some percent"
	between  = "some half of them are undisturbed and the rest are not: the median lies where hardly any are"
	early    = "who waits beside burners that are parked comes back a period or two earlier than in the kernel"
)

// cause of a miss, as far as it was found out.
func cause(seed uint64, v Verdict) string {
	of := known[seed]
	if text, ok := of[v.Figure]; ok {
		return text
	}
	return "not found out"
}
