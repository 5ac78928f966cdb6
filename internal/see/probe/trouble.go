package probe

// tooManyCgroups makes counting dearer, and nothing inexact.
const tooManyCgroups = "too many cgroups"

// Troubles tells what went wrong in counting and reading since Open, by what it was, with how often; empty: nothing.
// None of them is expected; any but tooManyCgroups makes figures inexact. A thread that could not be remembered (the
// kernel has no memory at hand, or is just making room for another on that CPU) is at its next switch or wake-up: until
// then wanted lacks it.
func (p *Probe) Troubles() map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return map[string]uint64{}
	}
	return p.troubles()
}

func (p *Probe) troubles() map[string]uint64 {
	found := map[string]uint64{}
	for i, what := range map[bpfTrouble]string{
		bpfTroubleTROUBLE_UNDERFLOW:  "a count would have gone below 0",
		bpfTroubleTROUBLE_CONTENTION: "a count was changed by too many CPUs at once",
		bpfTroubleTROUBLE_THREADS:    "a thread could not be remembered at once",
		bpfTroubleTROUBLE_HELD:       "more throttled cgroups on a CPU than are remembered",
		bpfTroubleTROUBLE_PLACES:     tooManyCgroups,
		bpfTroubleTROUBLE_FULL:       "a count would have gone above 65535",
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
