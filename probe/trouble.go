package probe

// Troubles tells what went wrong in the kernel since Open, by what it was; empty: nothing. None of them is expected;
// any makes figures inexact, "too many cgroups" only makes counting dearer. A thread that could not be remembered (the
// kernel has no memory at hand, or is just making room for another on that CPU) is at its next switch or wake-up: until
// then wanted lacks it.
func (p *Probe) Troubles() map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]uint64{}
	if p.closed {
		return found
	}
	for i, what := range map[bpfTrouble]string{
		bpfTroubleTROUBLE_UNDERFLOW:  "a count would have gone below 0",
		bpfTroubleTROUBLE_CONTENTION: "a count was changed by too many CPUs at once",
		bpfTroubleTROUBLE_THREADS:    "a thread could not be remembered at once",
		bpfTroubleTROUBLE_HELD:       "more throttled cgroups on a CPU than are remembered",
		bpfTroubleTROUBLE_PLACES:     "too many cgroups",
	} {
		var n uint64
		if err := p.coll.Maps[bpfMapTroubles].Lookup(uint32(i), &n); err == nil && n > 0 {
			found[what] = n
		}
	}
	if p.hasty > 0 {
		found["a container changed faster than it could be read"] = p.hasty
	}
	return found
}
