package services

import (
	"context"
	"os"
	"runtime"

	"github.com/unthrottle/unthrottle/test/study"
)

// Main is [study.Main] for a program that starts services: it is their client, too, where it is started as one. It is called by main, whose
// goroutine stays on its thread: services end with the thread that started them (PR_SET_PDEATHSIG in prctl(2)), which must live as long as
// the program.
func Main(name string, run func(context.Context) error) {
	if code, ok := ClientMain(); ok {
		os.Exit(code)
	}
	runtime.LockOSThread()
	study.Main(name, run)
}
