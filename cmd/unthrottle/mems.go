package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/placing/rebalance"
)

// followMems moves the memory of a container after its new CPUs, and adds a note on
// that to the result.
func followMems(cmd *cobra.Command, w *writeFlags, target string, result *fix.Result) error {
	h, err := openCgroups()
	if err != nil {
		return err
	}
	env, done, err := w.env(cmd, h)
	if err != nil {
		return err
	}
	defer done()
	c, _, err := resolve(h, target)
	if err != nil {
		return err
	}
	out, err := rebalance.Follow(cmd.Context(),
		rebalance.Env{Apply: env, Facts: w.hostFacts(h, env), Wait: clock.Sleep}, rebalance.HostPager{}, c.Group.Path)
	if err != nil {
		return fmt.Errorf("its CPUs are set, its memory did not follow: %w", err)
	}
	text := fmt.Sprintf("memory: on nodes %s, which alone it may use now", out.Nodes)
	switch {
	case out.Unseen != nil:
		text = fmt.Sprintf("memory: its memory nodes stay wide, because where all of it is could not be seen: %v", out.Unseen)
	case out.Remote == nil:
		text = "memory: its memory nodes stay wide, because it has no memory yet that could be looked at"
	case !out.Narrowed:
		text = fmt.Sprintf("memory: %.1f %% is still on other nodes than %s, so that its memory nodes stay as they were",
			100**out.Remote, out.Nodes)
	}
	result.Warnings = append(result.Warnings, text)
	return nil
}
