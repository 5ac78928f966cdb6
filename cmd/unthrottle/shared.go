package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// openCgroups finds this host's cgroup mounts; without a cpu controller
// nothing can be measured.
func openCgroups() (*cgroup.Host, error) {
	h, err := cgroup.Open("/proc")
	if err != nil {
		return nil, exitWith{exitNotMeasurable, err}
	}
	return h, nil
}

// needCPU refuses a host on which throttling cannot be seen at all.
func needCPU(h *cgroup.Host) error {
	if _, ok := h.Version(cgroup.CPU); !ok {
		return exitWith{exitNotMeasurable, errors.New("no cgroup hierarchy with the cpu controller is mounted: 'unthrottle check' shows what there is")}
	}
	return nil
}

// list finds the containers at or below scope ("": all).
func list(h *cgroup.Host, scope string) ([]container.Container, error) {
	if err := needCPU(h); err != nil {
		return nil, err
	}
	o := container.DefaultOptions()
	o.Scope = scope
	all, err := container.List(h, o)
	if err != nil {
		return nil, exitWith{exitNotMeasurable, err}
	}
	return all, nil
}

// resolve finds the one container that target names. The scope does not narrow
// what can be named, only what may be written.
func resolve(h *cgroup.Host, target string) (container.Container, []container.Container, error) {
	all, err := list(h, "")
	if err != nil {
		return container.Container{}, nil, err
	}
	c, err := container.Resolve(h, all, target)
	if notMeasurable := new(container.NotMeasurable); errors.As(err, &notMeasurable) {
		return c, all, exitWith{exitNotMeasurable, err}
	}
	return c, all, err
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// terminalWidth is the width of standard output in columns, 80 where it is no
// terminal.
func terminalWidth() int {
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// say writes a message for people; data goes to standard output only.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// onTerminal says whether people read f as it comes.
func onTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// useColor follows no-color.org, and TERM=dumb.
func useColor(f *os.File) bool { return fullScreen(f) && os.Getenv("NO_COLOR") == "" }

// fullScreen says whether f understands more than lines of text.
func fullScreen(f *os.File) bool { return onTerminal(f) && os.Getenv("TERM") != "dumb" }

// notEmpty refuses flags that were given as "", most likely from a variable that
// is not set: no scope at all would be the opposite of what was meant.
func notEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty: leave it out, or say what is meant", name)
		}
	}
	return nil
}

// cleanScope makes a kernel path of a --scope; "" stays "".
func cleanScope(h *cgroup.Host, scope string) (string, error) {
	if scope == "" {
		return "", nil
	}
	path, err := cgroup.CleanPath(h, scope)
	if err != nil {
		return "", fmt.Errorf("--scope %s: %w", scope, err)
	}
	return path, nil
}
