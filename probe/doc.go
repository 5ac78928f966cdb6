// Package probe measures how many CPUs a container uses at once, how many it wants, and when a quota holds it back, from
// the kernel's own scheduling events: exact where others sample.
//
// # Problem
//
// Throttling is a matter of milliseconds: 32 threads spend a quota of 200 ms in 19 ms. Counters know sums, samples miss
// it. The scheduler knows, at every switch, and BPF lets us count there for the price of some 100 ns.
//
// # Use
//
//	p, err := probe.Open(probe.Options{})         // *Unavailable: what was refused and what to do
//	p.Watch(probe.Container{ID: id, Path: path})
//	c, err := p.Read(id)                          // Counts, cumulative: width, wanted, stopped time
//	p.PeriodRows(ctx, func(r probe.PeriodRow) error)   // a row per period and watched container
//	footer, err := p.Record(ctx, probe.RecordOptions{Target: c, For: 10 * time.Second, Begin: …},
//		func(e *recording.Event) error)       // every event of one container, in order of time
//	p.Costs()                                     // after EnableCosts: runs and time per program
//	p.Close()
package probe
