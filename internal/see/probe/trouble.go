package probe

// tooManyCgroups makes counting slower, and nothing inexact.
const tooManyCgroups = "too many cgroups"

// Troubles returns what went wrong in counting and reading since Open, and how often; empty without any. All except
// tooManyCgroups make figures inexact. The kernel may have no memory for a thread's state, or may be making room for
// another on that CPU. Then wanted lacks the thread until its next switch or wake-up.
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
	if p.inexact > 0 {
		found["a container changed faster than it could be read"] = p.inexact
	}
	return found
}
