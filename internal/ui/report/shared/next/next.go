// Package next makes the one command to type after another.
//
// # Rule
//
// A command that leaves a question open ends with the command that answers it: who is stopped, why, what helps, is it in
// force, put it back. The same target gets the same words everywhere, quoted for a shell. Flags without which the next
// command would look elsewhere (Flags) go along. Nothing follows an answer such as "leave it".
//
// # Worked example
//
//	ls           sudo unthrottle explain /shop/cart
//	explain      sudo unthrottle fix /shop/cart
//	fix          sudo unthrottle status
//	status       sudo unthrottle restore --dry-run
package next

import (
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
)

// Flags of the command before that the next one needs too; "" is left out.
type Flags struct {
	Scope, StateDir string
}

// List shows who is stopped.
const List = "unthrottle ls"

// Explain says why a container is stopped.
func Explain(target string) string { return Line("sudo unthrottle explain", target) }

// Forecast shows what each remedy would do to a recording.
func Forecast(file string) string { return Line("unthrottle forecast", file) }

// Run runs a scenario for real.
func Run(file string) string { return Line("sudo unthrottle simulate --real", file) }

// Simulate runs a scenario in the simulator.
func Simulate(file string) string { return Line("unthrottle simulate", file) }

// PlanMoves shows the moves that would repair the placement of this host.
func PlanMoves() string { return Line("sudo unthrottle defrag --dry-run") }

// PlanPin shows what would be written to give a container CPUs of its own.
func PlanPin(target string, cpus int) string {
	return Line("sudo unthrottle apply", target, "--remedy", string(remedy.Pin), "--cpus", strconv.Itoa(cpus), "--dry-run")
}

// Fix ends a container's stops.
func (f Flags) Fix(target string) string {
	return Line("sudo unthrottle fix", append([]string{target}, f.all()...)...)
}

// Chosen follows a forecast: fix where it can do what is recommended, "" where the answer is another one. Before it grants
// more CPU than the limit, fix asks.
func (f Flags) Chosen(target string, c *policy.Choice) string {
	if c != nil && (c.Answer == policy.AnswerRemedy || c.Answer == policy.AnswerMoreCPU && c.Row >= 0) {
		return f.Fix(target)
	}
	return ""
}

// Status shows what is in force.
func (f Flags) Status() string { return Line("sudo unthrottle status", f.dir()...) }

// PlanRestore shows what would be put back.
func (f Flags) PlanRestore() string { return Line("sudo unthrottle restore --dry-run", f.dir()...) }

func (f Flags) all() []string {
	if f.Scope == "" {
		return f.dir()
	}
	return append([]string{"--scope", f.Scope}, f.dir()...)
}

func (f Flags) dir() []string {
	if f.StateDir == "" {
		return nil
	}
	return []string{"--state-dir", f.StateDir}
}

// Line is a command with words after it, each quoted where a shell would read it otherwise.
func Line(command string, words ...string) string {
	for _, word := range words {
		command += " " + quoted(word)
	}
	return command
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !strings.ContainsRune(shellSafe, r) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// shellSafe are the characters that a shell leaves alone.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:@%+=,"
