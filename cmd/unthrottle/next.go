package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
	"github.com/unthrottle/unthrottle/placement"
)

// sayNext ends a command with the one command to type next; "": nothing follows. Only a person at a terminal reads it.
// It stands on one line however long it is: it is there to be copied.
func sayNext(out output, command string) {
	if command != "" && hasReader(out) {
		_, _ = os.Stderr.WriteString("Next: " + text.Sanitize(command, maxNext) + "\n")
	}
}

// maxNext bounds the line of sayNext, in characters: names are strangers'.
const maxNext = 4096

// hasReader tells whether a person at a terminal reads the result.
func hasReader(out output) bool { return !out.json() && terminal.Is(os.Stderr) }

// next are the flags that the next command needs too.
func (f *writeFlags) next() next.Flags {
	flags := next.Flags{Scope: f.scope}
	if f.stateDir != defaultStateDir() {
		flags.StateDir = f.stateDir
	}
	return flags
}

// forReal is the command line of a dry run without its --dry-run.
func forReal(cmd *cobra.Command, args []string) string { return asTyped(cmd, args, "dry-run", "") }

// asTyped is the command line with another value of one flag; "": without it.
func asTyped(cmd *cobra.Command, args []string, flag, value string) string {
	words := slices.Clone(args)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == flag:
		case f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal:
			words = append(words, "--"+f.Name)
		case f.NoOptDefVal != "":
			words = append(words, "--"+f.Name+"="+f.Value.String())
		default:
			words = append(words, flagWords(f)...)
		}
	})
	if value != "" {
		words = append(words, "--"+flag, value)
	}
	return next.Line("sudo "+cmd.CommandPath(), words...)
}

// afterTooFew follows a fix whose latency source printed too few numbers: the same command with a longer look, or else with
// a lower percentile; "": neither is known.
func afterTooFew(cmd *cobra.Command, args []string, few *fix.TooFewLatencies) string {
	switch {
	case few.Longer > 0 && !few.LooksBack:
		return asTyped(cmd, args, "for", few.Longer.String())
	case few.Lower.Quantile > 0:
		return asTyped(cmd, args, "slo", few.Lower.String())
	}
	return ""
}

// flagWords are a flag as it is typed: a list one value at a time.
func flagWords(f *pflag.Flag) (words []string) {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	for _, v := range values {
		words = append(words, "--"+f.Name, v)
	}
	return words
}

// afterFix follows a fix. A change that did not help is no end: a longer look may tell more.
func afterFix(flags next.Flags, target string, r fix.Result) string {
	switch {
	case r.Kept:
		return flags.Status()
	case r.ID != "":
		return next.Explain(target)
	}
	return ""
}

// afterPlace follows a placement on this host: the moves that repair it, or the pin of the first container that runs
// here.
func (f *placeFlags) afterPlace(cmd *cobra.Command, out placement.Outcome) string {
	if f.topology != "" || cmd.Flags().Changed("sysfs") || !hasReader(f.out) {
		return ""
	}
	if f.score {
		if len(out.Moves) > 0 {
			return next.PlanMoves()
		}
		return ""
	}
	h, err := openCgroups()
	if err != nil {
		return ""
	}
	containers, err := list(h, "")
	if err != nil {
		return ""
	}
	for _, c := range out.Containers {
		if c.Class != placement.Exclusive {
			continue
		}
		if _, err := container.Resolve(h, containers, c.Name); err == nil {
			return next.PlanPin(c.Name, c.Own.Size())
		}
	}
	return ""
}
