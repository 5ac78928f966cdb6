package main

func (t *table) text() string {
	s := ""
	for _, who := range t.who {
		r := t.sum("", 0, "", who)
		s += who + " avoid% " + percentOf(r.avoidable, r.arrivals) + " forced/100 s,n,l " + percentOf(r.forced[0], r.containers) + " " + percentOf(r.forced[1], r.containers) + " " + percentOf(r.forced[2], r.containers) + " sharing% " + percentOf(r.sharing, r.containers) + " stranded " + each(r.stranded, r.arrivals) + " moves/rec " + each(r.moves, r.recovered) + " t50 " + micros(r.quantile(.5)) + " t99 " + micros(r.quantile(.99)) + " refused " + each(r.refused, 1) + "\n"
	}
	return s
}
