// Command lab boots a Linux guest with the requested CPUs and topology, and runs commands or this tree's tests in it.
// See docs/lab.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/test/lab/boot"
	"github.com/unthrottle/unthrottle/test/lab/guest"
)

// Exit codes, fit for `git bisect run`.
const (
	exitCannotTest  = 125 // the lab, not the command, has failed
	exitInterrupted = 130 // bisect stops
)

// exitCode is an error that only sets the exit code.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	if guest.Inside() {
		guest.Init()
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exitCode
	var failure *boot.Failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "lab: interrupted; the guest was ended")
		return exitInterrupted
	case errors.As(err, &failure):
		fmt.Fprintf(stderr, "---- the guest's console\n%s\n", failure.Console)
		if failure.QEMU != "" {
			fmt.Fprintf(stderr, "---- QEMU\n%s\n", failure.QEMU)
		}
	}
	fmt.Fprintln(stderr, "lab:", err)
	return exitCannotTest
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Boot a Linux with the CPUs and topology asked for, under QEMU without KVM",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	o := &options{}
	root.PersistentFlags().StringVar(&o.cacheDir, "cache", "", "folder for QEMU and kernels (default ~/.cache/unthrottle/lab)")
	root.AddCommand(runCommand(o), shellCommand(o), testCommand(o), listCommand(o), fetchCommand(o), needsCommand())
	return root
}
