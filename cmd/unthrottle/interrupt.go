package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruptible ends its context at the first Ctrl-C, SIGTERM or SIGHUP, so that
// a command undoes what it has begun. The second ends the program at once: what
// is undone by half then is in the journal, for restore. A hang-up is never the
// second, since shell and kernel both send one when a terminal closes. Under
// nohup it stays ignored.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel()
		for s := range signals {
			if s != syscall.SIGHUP {
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// sayUndoing tells what an interrupt has undone, and the way out of waiting.
func sayUndoing(what string) {
	fmt.Fprintf(os.Stderr, "unthrottle: interrupted: undoing %s; a second Ctrl-C leaves it for 'unthrottle restore'\n", what)
}
