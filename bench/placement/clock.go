package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of the calling thread: on a machine that others
// use too, it tells what a decision costs, where the wall clock tells who else
// was running.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux since 2.6.12 has it
	}
	return time.Duration(t.Nano())
}
