package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/unthrottle/unthrottle/test/lab/boot"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

func runCommand(o *options) *cobra.Command {
	var files, env []string
	var out string
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command in a guest; its output and exit status become the lab's",
		Long: `Run a command in a guest; its output and exit status become the lab's.

The exit code is the command's (0 to 124). 125 means that the lab could not
test: the guest did not boot, hung until --timeout, or has no such command.
A command ended by a signal, or with a code above 127, counts as 1. So
"git bisect run lab run --kernel arch/x86/boot/bzImage -- CHECK" works.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := o.guest(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if g.Files, err = parseFiles(files); err != nil {
				return err
			}
			g.OutDir = out
			g.Plan.Steps = []wire.Step{{Argv: args, Env: env, Dir: "/root"}}
			g.Stdout = func(int) io.Writer { return cmd.OutOrStdout() }
			g.Stderr = func(int) io.Writer { return cmd.ErrOrStderr() }
			result, err := o.slow.run(cmd.Context(), g, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return verdict(result.Exits[0], cmd.ErrOrStderr())
		},
	}
	o.add(cmd, 5*time.Minute)
	cmd.Flags().StringArrayVar(&files, "file", nil, "GUESTPATH=HOSTPATH: put a file or folder into the guest (repeat)")
	cmd.Flags().StringArrayVar(&env, "env", nil, "NAME=VALUE in the command's environment (repeat)")
	cmd.Flags().StringVar(&out, "out", "", "folder that gets what the command leaves in "+wire.OutDir)
	return cmd
}

// verdict turns the command's end into the lab's exit code.
func verdict(s wire.ExitStatus, stderr io.Writer) error {
	switch {
	case s.NotRun != "":
		return fmt.Errorf("the command was not run: %s", s.NotRun)
	case s.Signal != "":
		fmt.Fprintf(stderr, "lab: the command was ended by %s\n", s.Signal)
		return exitCode(1)
	case s.Code == 0:
		return nil
	case s.Code == 126 || s.Code == 127:
		return fmt.Errorf("the command's shell could not run something (exit code %d)", s.Code)
	case s.Code > 127:
		fmt.Fprintf(stderr, "lab: the command ended with code %d\n", s.Code)
		return exitCode(1)
	}
	return exitCode(s.Code)
}

func parseFiles(args []string) ([]boot.File, error) {
	var files []boot.File
	for _, a := range args {
		in, from, ok := strings.Cut(a, "=")
		if !ok || in == "" || from == "" {
			return nil, fmt.Errorf("--file %s: want GUESTPATH=HOSTPATH", a)
		}
		if _, err := os.Stat(from); err != nil {
			return nil, fmt.Errorf("--file %s: %w", a, err)
		}
		files = append(files, boot.File{In: in, From: filepath.Clean(from)})
	}
	return files, nil
}

func shellCommand(o *options) *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "shell",
		Short: "Open a shell in a guest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			g, err := o.guest(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if g.Files, err = parseFiles(files); err != nil {
				return err
			}
			g.Plan.Shell = true
			g.Console, g.Terminal = cmd.OutOrStdout(), os.Stdin
			if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
				fmt.Fprintln(cmd.ErrOrStderr(), "lab: booting; leave with exit or Ctrl-D")
				old, failed := term.MakeRaw(fd)
				if failed != nil {
					return failed
				}
				defer func() {
					if e := term.Restore(fd, old); err == nil {
						err = e
					}
				}()
			}
			_, err = boot.Run(cmd.Context(), g)
			return err
		},
	}
	o.add(cmd, 8*time.Hour)
	cmd.Flags().StringArrayVar(&files, "file", nil, "GUESTPATH=HOSTPATH: put a file or folder into the guest (repeat)")
	return cmd
}
