package txn

// Narrow is a cap of a container's width, and what the scheduler counted of it since it was set. Nil: the cap is not in
// force, so that nothing is counted.
type Narrow struct {
	// CapCPUs is the limit in CPUs, MaxCreditSeconds the CPU time that can be saved below it.
	CapCPUs          float64 `json:"cap_cpus"`
	MaxCreditSeconds float64 `json:"max_credit_seconds"`
	// InForce reports whether the scheduler runs and has the cap. Nil: it could not be asked.
	InForce *bool `json:"in_force"`
	// Widest is the most CPUs in use at once, CPUsNow those in use now.
	Widest  *int `json:"widest"`
	CPUsNow *int `json:"cpus_now"`
	// CreditSeconds is the CPU time saved now.
	CreditSeconds *float64 `json:"credit_seconds"`
	// AtCapSeconds is how long it used as many CPUs as it may, WaitedSeconds how long at least one more thread waited then.
	AtCapSeconds  *float64 `json:"at_cap_seconds"`
	WaitedSeconds *float64 `json:"waited_seconds"`
	// SlicesCut counts slices that ended early because the width fell.
	SlicesCut *uint64 `json:"slices_cut"`
	// Faults counts, for the whole scheduler since it was loaded and by name, what must not happen. Nil: it is not counted.
	Faults map[string]uint64 `json:"faults"`
}
