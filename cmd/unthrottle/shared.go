package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/outfile"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
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
		return exitWith{exitNotMeasurable, errors.New("no cgroup hierarchy with the cpu controller is mounted: " +
			"'unthrottle check' shows what there is")}
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
	containers, err := container.List(h, o)
	for _, warning := range o.Runtimes.Warnings() {
		say("%s", warning)
	}
	if err != nil {
		return nil, exitWith{exitNotMeasurable, err}
	}
	return containers, nil
}

// resolve finds the one container that target names. The scope does not narrow
// what can be named, only what may be written.
func resolve(h *cgroup.Host, target string) (container.Container, []container.Container, error) {
	containers, err := list(h, "")
	if err != nil {
		return container.Container{}, nil, err
	}
	c, err := container.Resolve(h, containers, target)
	if notMeasurable := new(container.NotMeasurable); errors.As(err, &notMeasurable) {
		return c, containers, exitWith{exitNotMeasurable, err}
	}
	if described := c.Describe(); err == nil && described != "" {
		say("%s: %s", c.Name, described)
	}
	return c, containers, err
}

// missingFile says in our words that a file which the user named is not there; another error stays as it is.
func missingFile(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file", text.Sanitize(name, 0))
	}
	return err
}

// orFile adds to the error of a TARGET that nothing here is called so that it is no file either, where a file may be meant.
func orFile(target string, err error) error {
	if unknown := new(container.NotFound); err == nil || !errors.As(err, &unknown) || target == "" || strings.HasPrefix(target, "pid:") {
		return err
	}
	if strings.Contains(filepath.Base(target), ".") {
		return fmt.Errorf("%s: no such file; and %w", text.Sanitize(target, 0), err)
	}
	return fmt.Errorf("%w; and there is no file of that name", err)
}

// say writes a message for people; data goes to standard output only.
func say(format string, args ...any) { terminal.Message(os.Stderr, fmt.Sprintf(format, args...)) }

// outStyle is how text on standard output looks.
func outStyle() page.Style { return styleOf(false) }

// goingOn says once a minute on standard error that a long command goes on; done ends it.
func goingOn(what string) (done func()) { return progress.NewMinutely(os.Stderr, what).Done }

// styleOf is how text on standard output looks with the flag --ascii.
func styleOf(ascii bool) page.Style {
	style := terminal.Style(os.Stdout)
	style.ASCII = style.ASCII || ascii
	return style
}

// rejectEmptyFlags refuses flags that were given as "", most likely from a shell
// variable that is not set. An empty scope would mean the whole host.
func rejectEmptyFlags(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty: leave it out, or say what is meant", name)
		}
	}
	return nil
}

// cleanPrefix makes a kernel path of the cgroup that a flag names; "" stays "".
func cleanPrefix(h *cgroup.Host, flag, prefix string) (string, error) {
	if prefix == "" {
		return "", nil
	}
	path, err := cgroup.CleanPath(h, prefix)
	if err != nil {
		return "", fmt.Errorf("--%s %s: %w", flag, prefix, err)
	}
	return path, nil
}

// existingPrefix is the cgroup that a flag names, which must be there: a typo is no empty host. "" stays "".
func existingPrefix(h *cgroup.Host, flag, prefix string) (string, error) {
	path, err := cleanPrefix(h, flag, prefix)
	if err != nil || path == "" {
		return path, err
	}
	if err := needCPU(h); err != nil {
		return "", err
	}
	if !cgroup.Exists(h, cgroup.CPU, path) {
		return "", fmt.Errorf("--%s %s: there is no such cgroup: 'unthrottle ls' lists those with containers", flag,
			text.Sanitize(prefix, 0))
	}
	return path, nil
}

// rejectPairs refuses a flag beside one of others.
func rejectPairs(cmd *cobra.Command, flag, because string, others ...string) error {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	for _, other := range others {
		if cmd.Flags().Changed(other) {
			return usage(cmd, "--%s and --%s: give one of them, since %s", flag, other, because)
		}
	}
	return nil
}

// rejectWithout refuses flags that do nothing without another one. given: that one is.
func rejectWithout(cmd *cobra.Command, needed string, given bool, flags ...string) error {
	for _, flag := range flags {
		if !given && cmd.Flags().Changed(flag) {
			return usage(cmd, "--%s goes with --%s, and does nothing without it", flag, needed)
		}
	}
	return nil
}

// pageIsIn tells where a page of --html is.
const pageIsIn = "the page is in %s"

// wanted is a file that a flag names for output beside the result; nil: none is.
type wanted struct {
	*outfile.File
	name string
}

// begin begins the file before the measurement, so that one that cannot be written is told then.
func begin(name string) (*wanted, error) {
	if name == "" {
		return nil, nil
	}
	file, err := outfile.Create(name)
	if err != nil {
		return nil, err
	}
	return &wanted{file, name}, nil
}

// write writes the file whole and says where it is: told is a sentence with %s for its name.
func (f *wanted) write(told string, content func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	if err := f.WriteAll(content); err != nil {
		return err
	}
	say(told, text.Sanitize(f.name, 0))
	return nil
}

// abandon removes the unfinished file.
func (f *wanted) abandon() {
	if f != nil {
		_ = f.End(false)
	}
}

// thisHost says where the figures of a page come from: this host, now. What cannot be read is left out.
func thisHost() webpage.Origin {
	host, _ := os.Hostname()
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return webpage.Origin{Host: text.Sanitize(host, 0), Kernel: strings.TrimSpace(string(kernel)), Version: version}
}
