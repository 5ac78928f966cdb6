// Command unthrottle finds the containers that the Linux kernel stops for
// their CPU limit, applies the remedy with the best forecast, proves that the
// stalls are gone, and can put everything back.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

// version of the program; the build sets it.
var version = "dev"

func main() {
	ctx, stop := interruptible(context.Background())
	root := newRoot()
	err := root.ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	os.Exit(exitCode(err, interrupted))
}

// Groups of the help page: what a command may do to the host.
const (
	groupLook   = "look"
	groupTry    = "try"
	groupChange = "change"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "unthrottle",
		Short: "Keep your CPU limits, lose the stalls",
		Long: `Keep your CPU limits, lose the stalls.

unthrottle shows which containers the kernel stops for their CPU limit, and
whose quota it was. It forecasts what each remedy would bring, applies the best
one that keeps the limit, checks that it helped, and can put everything back.

TARGET is a cgroup path, a container id or a unique prefix of one, the name of
a container, pod or systemd unit, or pid:N.

Exit codes: 0 fine, 1 stopped above the bound, 2 usage or failure,
3 could not measure, 130 interrupted.

These are the commands of a first month; 'unthrottle help all' lists all.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          subcommandsOnly,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: `  sudo unthrottle demo          throttling and its end on this host
  unthrottle ls                 who is stopped, and by whose quota
  sudo unthrottle fix TARGET    end it
  sudo unthrottle restore       put everything back`,
	}
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "Look (changes nothing):"},
		&cobra.Group{ID: groupTry, Title: "Try (in cgroups of its own, or simulated):"},
		&cobra.Group{ID: groupChange, Title: "Change (journalled, can be undone):"},
	)
	root.AddCommand(
		newLs(), newTop(), newExplain(), newForecast(), newCheck(), newInside(), newLook(), newRuntimes(), newSpans(),
		newTopology(), newStatus(), newPolicy(), newExport(), newFleet(), newBugReport(), newSchema(), newVersion(),
		newDemo(), newSimulate(), newSized(), newPlace(), newBench(),
		newFix(), newApply(), newDefrag(), newRestore(), newAgent(),
	)
	root.AddCommand(newChildren()...)
	addExamples(root)
	addCompletions(root)
	root.SetHelpCommand(newHelp(root))
	helpOfFew(root)
	root.SetUsageTemplate(wrapFlags(root.UsageTemplate(), terminal.Width(os.Stdout)))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(cmd, "%s", flagError(cmd, err))
	})
	return root
}

// flagError is an error of the flag parser in our words, with the flag that may be meant instead of an unknown one.
func flagError(cmd *cobra.Command, err error) string {
	words := goWords.ReplaceAllString(err.Error(), "give a whole number")
	if of := badValue.FindStringSubmatch(words); of != nil {
		if f := cmd.Flags().Lookup(strings.TrimPrefix(of[2], "--")); f != nil && f.Value.Type() == "bool" {
			of[3] = "give true or false"
		}
		return fmt.Sprintf("%s %q: %s", of[2], of[1], of[3])
	}
	unknown, ok := strings.CutPrefix(words, "unknown flag: --")
	if !ok {
		return words
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return words + text.DidYouMean("--"+unknown, names)
}

// badValue matches what the flag parser says of a value that a flag refuses: the value, the flag's last name, and why.
var badValue = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-\w, )?(--[\w-]+)" flag: (.*)$`)

// goWords matches the words of Go's parser of whole numbers in errors, which tell a user nothing.
var goWords = regexp.MustCompile(`strconv\.\w+: parsing "[^"]*": (invalid syntax|value out of range)`)

// usage is an error in the call, with the command that shows help.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s\nsee '%s --help'", fmt.Sprintf(format, args...), cmd.CommandPath())
}

// noArgs is for commands without arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, "%q: %s takes no arguments", args[0], strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "))
	}
	return nil
}

// oneTarget is for commands on one container.
func oneTarget(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage(cmd, "TARGET is missing: a cgroup path, an id, a name or pid:N ('unthrottle ls' lists them)")
	case len(args) > 1:
		return usage(cmd, "one TARGET is wanted, not %d", len(args))
	}
	return nil
}

// exitWith is an error with its exit code. err may be nil: then nothing is printed.
type exitWith struct {
	code int
	err  error
}

func (e exitWith) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitWith) Unwrap() error { return e.err }

// The exit codes of every command.
const (
	exitFine          = 0
	exitAboveBound    = 1
	exitFailure       = 2
	exitNotMeasurable = 3
	exitInterrupted   = 130
)

// interruption is the text of an error after an interrupt. It keeps the rest of the
// error, such as a failed rollback.
func interruption(err error) string {
	const interrupted = "interrupted"
	text := strings.ReplaceAll(err.Error(), context.Canceled.Error(), interrupted)
	if !strings.Contains(text, interrupted) {
		text = interrupted + ": " + text
	}
	return text
}

// exitCode prints err and turns it into the process's exit code.
func exitCode(err error, interrupted bool) int {
	if err == nil {
		return exitFine
	}
	if interrupted && errors.Is(err, context.Canceled) {
		say("unthrottle: %s", text.IDsOnce(interruption(err)))
		return exitInterrupted
	}
	code := exitFailure
	var with exitWith
	if errors.As(err, &with) {
		code = with.code
		if with.err == nil {
			return code
		}
	}
	say("unthrottle: %s", text.IDsOnce(err.Error()))
	return code
}
