package main

import (
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	view "github.com/unthrottle/unthrottle/internal/ui/report/check"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
)

func newCheck() *cobra.Command {
	var out output
	var w writeFlags
	cmd := &cobra.Command{
		Use:     "check",
		GroupID: groupLook,
		Short:   "Show what this host offers and what unthrottle can do here",
		Long: `Show what this host offers, who else gives out CPUs on it, what unthrottle can
do here as this user, and how to get what is missing.

It changes nothing. It loads the probe's BPF programs for a moment, since only
that tells whether explain, forecast and fix can record.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rejectEmptyFlags(cmd, "state-dir"); err != nil {
				return err
			}
			r, err := checkHost(w.stateDir)
			if err != nil {
				return err
			}
			if out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "check", r)
			}
			if err := view.Write(cmd.OutOrStdout(), r, outStyle()); err != nil {
				return err
			}
			sayNext(out, next.List)
			return nil
		},
	}
	out.add(cmd)
	w.addStateDir(cmd)
	return cmd
}

// checkHost finds out what can be done here, and tries what only a try can tell.
func checkHost(stateDir string) (features.Report, error) {
	h, err := openCgroups()
	if err != nil {
		return features.Report{}, err
	}
	r := features.Gather(h, infile.Root("/"), os.Geteuid())
	tried := features.Tried{Probe: tryProbe(), StateDir: tryStateDir(stateDir)}
	looking, changing := features.Commands(r, tried)
	r.Can = slices.Concat(r.Can[:1], looking, r.Can[1:], remedy.Abilities(r), changing)
	for i := range r.Can {
		if can := &r.Can[i]; can.Can && can.What == remedy.AbilitySchedExt {
			if can.Can = schedExt().Can; !can.Can {
				can.Why = schedExt().Why
			}
		}
	}
	r.Missing = append(r.Missing, features.Lacks(r, tried)...)
	return r, nil
}

// tryProbe loads the probe for a moment. It says why that fails; "": it does not.
func tryProbe() string {
	p, err := probe.Open(probe.Options{Containers: 1, RingBytes: agentRingBytes})
	if err != nil {
		return err.Error()
	}
	p.Close()
	return ""
}

// tryStateDir says why the journal cannot be kept in a directory; "": nothing speaks against it. It makes nothing.
func tryStateDir(dir string) string {
	if err := journal.CheckStateDir(dir); err != nil {
		return err.Error()
	}
	if err := unix.Access(dir, unix.W_OK); err != nil && !errors.Is(err, unix.ENOENT) {
		return "state directory " + dir + ": " + err.Error() + ": run as its owner, or use another --state-dir"
	}
	return ""
}
