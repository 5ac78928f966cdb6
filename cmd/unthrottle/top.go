package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/explain"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
	"github.com/unthrottle/unthrottle/internal/ui/top"
)

type topFlags struct {
	below    string
	interval time.Duration
	ascii    bool
}

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:     "top",
		GroupID: groupLook,
		Short:   "Watch all containers live, the most stopped first, with cause and timeline",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rejectEmptyFlags(cmd, "below"); err != nil {
				return err
			}
			if err := checkWindow(f.interval); err != nil {
				return err
			}
			if !terminal.Is(os.Stdin) || !terminal.FullScreen(os.Stdout) {
				return errors.New("top needs a terminal that can move its cursor (TERM=dumb cannot): 'unthrottle ls " +
					"--watch' prints lines, 'unthrottle ls -o json' data")
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			return runTop(cmd.Context(), h, f)
		},
	}
	shareString(cmd, &f.below, "below", "", "")
	lengthVar(cmd, &f.interval, time.Second, " each look is")
	shareSwitch(cmd, &f.ascii, "ascii", "")
	return cmd
}

func runTop(ctx context.Context, h *cgroup.Host, f topFlags) error {
	prefix, err := existingPrefix(h, "below", f.below)
	if err != nil {
		return err
	}
	if err := needCPU(h); err != nil {
		return err
	}
	m := top.Model{
		Color: terminal.Color(os.Stdout), ASCII: f.ascii || terminal.ASCII(), ExplainFor: topExplainFor,
		Explain: func(path string) tea.Cmd {
			return func() tea.Msg {
				text, err := explainText(ctx, h, path, styleOf(f.ascii))
				return top.Explained{Path: path, Text: text, Err: err}
			}
		},
		Fix: fixInFront,
	}
	p, note := openProbe(probe.Options{})
	if p != nil {
		defer p.Close()
	}
	follows, err := top.Run(ctx, m, os.Stdin, os.Stdout, func(ctx context.Context, show func(top.Frame)) error {
		o := observe.WatchOptions{Scope: prefix, Interval: f.interval}
		if p == nil {
			return top.Watch(ctx, h, o, nil, note, show)
		}
		return top.Watch(ctx, h, o, p, "", show)
	})
	if err == nil {
		sayNext(output{}, follows)
	}
	return err
}

// topExplainFor is the length of the recording that the enter key starts.
const topExplainFor = 10 * time.Second

// openProbe loads the probe. Where the kernel refuses, p is nil and missing says why.
func openProbe(o probe.Options) (p *probe.Probe, missing string) {
	p, err := probe.Open(o)
	if err != nil {
		return nil, text.Either(os.Geteuid() == 0, "", "without root ") + "widths are not measured: " + err.Error()
	}
	return p, ""
}

// fixInFront runs this program's fix on a container while top waits. Ctrl-C reaches it by itself: it undoes what it did,
// and top goes on.
func fixInFront(path string) tea.Cmd {
	exe, err := os.Executable()
	if err != nil {
		return func() tea.Msg { return top.Fixed{Err: err} }
	}
	return tea.Exec(top.Foreground{Cmd: exec.Command(exe, "fix", path), Holds: childInFront.Store},
		func(err error) tea.Msg { return top.Fixed{Err: err} })
}

// explainText records one container and gives its explanation for a terminal of any width.
func explainText(ctx context.Context, h *cgroup.Host, path string, style page.Style) (func(width int) string, error) {
	target, containers, err := resolve(h, path)
	if err != nil {
		return nil, err
	}
	e, err := live.Live(ctx, live.Options{Host: h, Root: infile.Root("/"), Target: target,
		Others: live.Others(target, containers), For: topExplainFor})
	if err != nil {
		return nil, err
	}
	return func(width int) string {
		var b strings.Builder
		style.Width = width
		_ = view.Write(&b, e, view.Options{Style: style}) // into memory: cannot fail
		return b.String()
	}, nil
}
