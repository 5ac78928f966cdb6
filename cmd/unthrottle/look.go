package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/explain"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
)

// Bounds of a look.
const (
	leastLook = 10 * time.Second
	lookShare = 0.01
)

func newLook() *cobra.Command {
	var out output
	var ascii bool
	var length time.Duration
	cmd := &cobra.Command{
		Use:     "look PID",
		GroupID: groupLook,
		Short:   "Say why a process's container is stopped, without rights",
		Long: `Say why the container of a process is stopped, by whose quota, and which pool of
threads spent it: from samples of its cgroup's counters and of what the kernel
tells of each thread. Nothing is changed.

It needs no root, no BPF and no agent. What samples cannot tell stands at the
end of the report, and then what you can do without rights on the host.

It ends when the finding is clear, after 10 s at the earliest, and uses at most
1 % of the container's limit: with many threads it looks less often.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "one PID is wanted: the number of a process in the container, as ps shows it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(strings.TrimPrefix(args[0], "pid:"))
			if err != nil || pid < 1 {
				return usage(cmd, "%s is no PID: give the number of a process, as ps shows it", text.Shown(args[0]))
			}
			if length < live.MinRecording || length > live.MostLook {
				return usage(cmd, "--for %s: give a time from %s to %s", plainTime(length), plainTime(live.MinRecording),
					plainTime(live.MostLook))
			}
			return runLook(cmd.Context(), pid, length, out, ascii, cmd.OutOrStdout())
		},
	}
	out.add(cmd)
	lengthVar(cmd, &length, time.Minute, ", unless the finding is clear earlier")
	shareSwitch(cmd, &ascii, "ascii", "")
	return cmd
}

func runLook(ctx context.Context, pid int, length time.Duration, out output, ascii bool, to io.Writer) error {
	done := progress.NewSlow(os.Stderr, "looking at process "+strconv.Itoa(pid), nil).Done // it mostly sleeps, and waits for no CPU
	e, err := live.Look(ctx, live.LookOptions{PID: pid, For: length, Least: min(length, leastLook), Share: lookShare})
	done()
	if err == nil {
		err = live.LongEnough(e, e.Target, ctx.Err() != nil)
	}
	if err != nil {
		return exitWith{exitNotMeasurable, err}
	}
	if out.json() {
		err = view.JSON(to, e, nil)
	} else {
		err = view.Write(to, e, view.Options{Style: styleOf(ascii)})
	}
	if err != nil {
		return err
	}
	return judged(e, explainFlags{bound: bound{share: -1}})
}
