package main

import (
	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/runtimes/here"
	view "github.com/unthrottle/unthrottle/internal/ui/report/runtimes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
)

func newRuntimes() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "runtimes TARGET",
		GroupID: groupLook,
		Short:   "Show what each process's runtimes made of the limit, and what fits",
		Long: `Show what the language runtimes of a container's processes made of its CPU
limit: processors, collector and compiler threads, pools; and what fits.

What a process was told, by a variable or a flag, is read. Else it is what the
runtime's rule makes of the limit of now: most decide once, at their start.`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := runtimesOf(args[0])
			if err != nil {
				return err
			}
			for _, note := range d.Notes {
				say("%s", note)
			}
			if out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "runtimes", d)
			}
			return view.Write(cmd.OutOrStdout(), d, outStyle())
		},
	}
	out.add(cmd)
	return cmd
}

func runtimesOf(name string) (view.Document, error) {
	d := view.Document{Processes: []runtimes.Decision{}, Notes: []string{}}
	h, err := openCgroups()
	if err != nil {
		return d, err
	}
	target, _, err := resolve(h, name)
	if err != nil {
		return d, err
	}
	d.Container = target.Name
	levels, err := cgroup.Levels(h, target.Group.Path)
	if err != nil {
		return d, exitWith{exitNotMeasurable, err}
	}
	limit, limited, _ := cgroup.Effective(levels)
	if limited {
		d.LimitCPUs = &limit
	}
	processes, notes, err := here.Processes(h, target.Group.Path)
	if err != nil {
		return d, exitWith{exitNotMeasurable, err}
	}
	d.Notes = append(d.Notes, notes...)
	known := threadpool.Known()
	for _, p := range processes {
		d.Processes = append(d.Processes, runtimes.Decide(known, p, limit)...)
	}
	return d, nil
}
