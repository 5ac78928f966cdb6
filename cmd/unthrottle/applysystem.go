package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/topology"
)

// systemFlags are the flags that --system takes.
var systemFlags = []string{"system", "reserve", "scope", "state-dir", "verbose", "dry-run", "json", "output"}

// confineSystem reads the flags of --system and confines the host's own slices.
func confineSystem(cmd *cobra.Command, w *writeFlags, reserve string, dryRun bool) (apply.Result, error) {
	var none apply.Result
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(systemFlags, f.Name) {
			wrong = fmt.Errorf("--%s is a setting of a remedy for a TARGET, not of --system", f.Name)
		}
	})
	if wrong != nil {
		return none, wrong
	}
	if err := rejectEmptyFlags(cmd, "reserve"); err != nil {
		return none, err
	}
	var request remedy.Request
	if reserve != "" {
		set, err := topology.ParseList(reserve)
		if err != nil {
			return none, fmt.Errorf("--reserve %s: %w", reserve, err)
		}
		request.Reserve = &set
	}
	h, err := openCgroups()
	if err != nil {
		return none, err
	}
	env, done, err := w.env(cmd, h)
	if err != nil {
		return none, err
	}
	defer done()
	return fix.ConfineSystem(cmd.Context(), env, w.hostFacts(h, env), request, dryRun)
}
