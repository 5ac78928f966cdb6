package inside

import "time"

// Gap is a stretch in which a thread that wanted to run did not. Times count from the beginning of the look.
type Gap struct {
	CPU int
	// Ran is when the thread ran last before; Start is when it wanted to run. They differ where it had slept.
	Ran   time.Duration
	Start time.Duration
	End   time.Duration
	// Used is the CPU time that the processes in sight had used at the end, since the beginning; 0: not read.
	Used time.Duration
}

// Trial is what one thread on each CPU saw while it ran as much as it could, and after Light half as much.
type Trial struct {
	CPUs int
	Tick time.Duration // of the kernel's clock
	// Light and End are when the threads began to rest half of the time, and when they ended.
	Light time.Duration
	End   time.Duration
	// UsedFull and Used are what the processes in sight had used at Light and at End.
	UsedFull time.Duration
	Used     time.Duration
	Gaps     []Gap // ordered by End
}

// Watch is what threads saw that slept and looked now and then.
type Watch struct {
	Start, End time.Duration
	// Interval is the time between two looks of one thread, at its longest.
	Interval time.Duration
	// Spent is the CPU time that the look itself took.
	Spent time.Duration
	Gaps  []Gap // ordered by End
}
