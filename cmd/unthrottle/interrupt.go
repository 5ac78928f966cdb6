package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// interruptible ends its context at the first Ctrl-C, SIGTERM or SIGHUP, so that
// a command undoes what it has begun. The second ends the program at once, and
// says what it leaves in force or half undone, which is in the journal: the next
// command that writes, or restore, puts it back. A hang-up is never the
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
		for s := range signals {
			switch answerTo(s, ctx.Err() == nil) {
			case undoAndEnd:
				cancel()
			case endAtOnce:
				sayLeft()
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// answer is what a signal makes the program do.
type answer int

// The answers.
const (
	goOn answer = iota
	undoAndEnd
	endAtOnce
)

// answerTo is the answer to a signal. first: none has ended the command yet.
func answerTo(s os.Signal, first bool) answer {
	switch {
	case s == syscall.SIGHUP && hangupReloads.Load(), s == os.Interrupt && childInFront.Load():
		return goOn
	case first:
		return undoAndEnd
	case s == syscall.SIGHUP:
		return goOn
	}
	return endAtOnce
}

// childInFront tells that Ctrl-C is for a command of ours that has the terminal, such as a fix that top runs. The kernel
// sends it to both.
var childInFront atomic.Bool

// hangupReloads tells that a hang-up is no interrupt: the agent reads its configuration again.
var hangupReloads atomic.Bool

// writing is what the command under way may write with; nil: nothing.
var writing atomic.Pointer[apply.Env]

// maxLeft bounds how many transactions are named.
const maxLeft = 8

// sayLeft names what the program leaves when it ends now.
func sayLeft() {
	env := writing.Load()
	if env == nil {
		return
	}
	inForce, err := apply.WouldLeave(*env)
	if err != nil {
		say("what is left in force cannot be told: %v; run 'unthrottle restore'", err)
		return
	}
	for i, f := range inForce {
		if i == maxLeft {
			say("and %d more: 'unthrottle status' lists them", len(inForce)-maxLeft)
			return
		}
		say("left as it is: %s of %.200q (%s), %s; 'unthrottle restore' puts it back, and so does the next command that writes",
			f.Remedy, f.Target, f.ID, text.Count(len(f.Changes), "setting"))
	}
}

// sayUndoing tells what an interrupt has undone, and the way out of waiting.
func sayUndoing(what string) {
	fmt.Fprintf(os.Stderr, "unthrottle: interrupted: undoing %s; a second Ctrl-C leaves it for 'unthrottle restore'\n", what)
}
