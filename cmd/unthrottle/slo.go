package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
)

// sloFlags are the user's objective and latency source.
type sloFlags struct {
	objective, command string
	lookBack           time.Duration
}

func (f *sloFlags) add(cmd *cobra.Command, objective, command string) {
	shareString(cmd, &f.objective, "slo", "", objective)
	cmd.Flags().StringVar(&f.command, "slo-command", "", command)
	timeVar(cmd, &f.lookBack, "slo-look-back", 0, "how far the command always looks back, such as 20s: so long is waited after the change")
}

// given reports whether any of them is.
func (f *sloFlags) given(cmd *cobra.Command) bool {
	return f.objective != "" || f.command != "" || cmd.Flags().Changed("slo-look-back")
}

// source is the latency source; nil: none was given. It checks the flags. alone: an objective needs no command,
// because the probe can measure.
func (f *sloFlags) source(cmd *cobra.Command, o *fix.Options, alone bool) (slo.Source, error) {
	if !f.given(cmd) {
		return nil, nil
	}
	if f.objective == "" || f.command == "" && (!alone || f.lookBack != 0) {
		return nil, errors.New("--slo and --slo-command belong together: the one says what is wanted, the other measures it")
	}
	if cmd.Flags().Changed("slo-look-back") && (f.lookBack <= 0 || f.lookBack > policy.MaxLookBack) {
		return nil, fmt.Errorf("--slo-look-back %v: must be above 0 and at most %v", f.lookBack, policy.MaxLookBack)
	}
	var err error
	if o.Objective, err = policy.ParseObjective(f.objective); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	if f.command == "" {
		return nil, nil
	}
	if _, err := slo.Split(f.command); err != nil {
		return nil, err
	}
	o.LookBack = f.lookBack
	return slo.Latencies(f.command), nil
}
