package workload

import (
	"fmt"
	"time"
)

// ChildCommand is the hidden first argument that makes this program a child.
const ChildCommand = "__child"

// Bounds of a [Spec].
const (
	MaxBurners  = 16384 // 2 per CPU on the largest x86 machine
	MinSleep    = time.Millisecond
	MaxSleep    = time.Second
	MaxDeadline = time.Hour
)

// Spec is what a child does.
type Spec struct {
	Burners  int           // threads that burn CPU, 0 to MaxBurners
	Sleep    time.Duration // what the sleeper asks for, MinSleep to MaxSleep
	Deadline time.Duration // the child ends this long after its start, up to MaxDeadline
}

// Check returns the first mistake in a spec; nil: it has none.
func (s Spec) Check() error {
	switch {
	case s.Burners < 0 || s.Burners > MaxBurners:
		return fmt.Errorf("burners %d: outside 0 to %d", s.Burners, MaxBurners)
	case s.Sleep < MinSleep || s.Sleep > MaxSleep:
		return fmt.Errorf("sleep %v: outside %v to %v", s.Sleep, MinSleep, MaxSleep)
	case s.Deadline <= 0 || s.Deadline > MaxDeadline:
		return fmt.Errorf("deadline %v: outside 0 to %v", s.Deadline, MaxDeadline)
	}
	return nil
}
