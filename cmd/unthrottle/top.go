package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/observe"
	"github.com/unthrottle/unthrottle/top"
)

type topFlags struct {
	scope    string
	interval time.Duration
	ascii    bool
}

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:     "top",
		GroupID: groupLook,
		Short:   "Watch all containers live, the most stopped first, with cause and strip",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notEmpty(cmd, "scope"); err != nil {
				return err
			}
			if err := checkWindow(f.interval); err != nil {
				return err
			}
			if !onTerminal(os.Stdin) || !fullScreen(os.Stdout) {
				return errors.New("top needs a terminal: 'unthrottle ls --watch' prints lines, 'unthrottle ls -o json' data")
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			return runTop(cmd.Context(), h, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.scope, "scope", "", "only containers at or below this cgroup `PREFIX`")
	flags.DurationVar(&f.interval, "window", time.Second, "how long each look is")
	flags.BoolVar(&f.ascii, "ascii", false, "plain characters only")
	return cmd
}

func runTop(ctx context.Context, h *cgroup.Host, f topFlags) error {
	scope, err := cleanScope(h, f.scope)
	if err != nil {
		return err
	}
	if err := needCPU(h); err != nil {
		return err
	}
	m := top.Model{Color: useColor(os.Stdout), ASCII: f.ascii}
	feed := top.Feed{}
	return top.Run(ctx, m, os.Stdin, os.Stdout, func(ctx context.Context, show func(top.Frame)) error {
		w := observe.NewWatcher(h, observe.WatchOptions{Scope: scope, Interval: f.interval})
		return w.Run(ctx, func(s observe.Snapshot) { show(feed.Frame(s, nil)) })
	})
}
