package placement

import "fmt"

// TooFewError tells that fewer CPUs are free than were asked for.
type TooFewError struct {
	Wanted, Free, Online int
	// PoolKeeps is how many more are free that the shared pool must keep.
	PoolKeeps int
	// WholeCores, Idle: there are enough, but not as whole cores, or not on
	// cores that are wholly free.
	WholeCores, Idle bool
}

func (e *TooFewError) Error() string {
	switch {
	case e.WholeCores:
		return fmt.Sprintf("%d CPUs wanted as whole cores: no whole cores that are free make that number (%d free of "+
			"%d online): ask for another number, or without whole cores", e.Wanted, e.Free, e.Online)
	case e.Idle:
		return fmt.Sprintf("%d CPUs wanted on cores of their own: so many cores are not wholly free (%d CPUs free of "+
			"%d online): ask for fewer, or let siblings be used", e.Wanted, e.Free, e.Online)
	case e.PoolKeeps > 0:
		return fmt.Sprintf("%d CPUs wanted, %d free of %d online, beside %d that the shared pool keeps: ask for "+
			"fewer, or give exclusive CPUs back first", e.Wanted, e.Free, e.Online, e.PoolKeeps)
	}
	return fmt.Sprintf("%d CPUs wanted, %d free of %d online: ask for fewer, or give exclusive CPUs back first", e.Wanted, e.Free, e.Online)
}
