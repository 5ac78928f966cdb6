package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/placing/placefile"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/place"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

type placeFlags struct {
	topology, sysfs, containers, current string
	order, reserve, unavailable          string
	moves                                int
	score, ascii                         bool
	out                                  output
}

func newPlace() *cobra.Command {
	var f placeFlags
	cmd := &cobra.Command{
		Use:     "place --containers FILE [--topology FILE|--sysfs DIR]",
		GroupID: groupTry,
		Short:   "Work out which container gets which CPUs, on any machine; changes nothing",
		Long: `Work out which container gets which CPUs, why, and what it costs
(docs/reference/place.md). Nothing is changed, and no rights are needed. With
--score nothing is placed either: what --current says is judged, also where
another program made it, and the moves that would repair it are listed. FILE "-"
reads standard input.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
		Example: `  unthrottle place --containers wanted.yaml
  unthrottle place --topology big.json --containers wanted.yaml --json
  unthrottle place --current now.json --score`,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.topology, "topology", "", "`FILE` that 'unthrottle topology --json' printed: the machine")
	flags.StringVar(&f.sysfs, "sysfs", "/sys", "`DIR` that stands for /sys, such as a saved tree")
	flags.StringVar(&f.containers, "containers", "", "YAML `FILE`: the containers, in the order of arrival")
	flags.StringVar(&f.current, "current", "", "`FILE` that 'place --json' printed: who has which CPUs already")
	flags.BoolVar(&f.score, "score", false, "only judge what --current says, and list the moves that would repair it")
	flags.StringVar(&f.order, "order", placement.DefaultOrder().String(),
		"`OBJECTIVES`, most important first; those not named come after them")
	shareString(cmd, &f.reserve, "reserve", "", ": kept for the system")
	flags.StringVar(&f.unavailable, "unavailable", "", "`CPUS` that another program owns, such as the kubelet")
	shareCount(cmd, &f.moves, "max-moves", 32, ", with --score")
	f.out.add(cmd)
	shareSwitch(cmd, &f.ascii, "ascii", "")
	return cmd
}

func (f *placeFlags) run(cmd *cobra.Command) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	state, err := f.state(cmd)
	if err != nil {
		return err
	}
	shared := cpuset.New()
	if f.current != "" {
		data, err := readBounded(cmd.Context(), f.current, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if state.Containers, shared, err = placefile.Current(f.current, data); err != nil {
			return err
		}
	}
	var events []placement.Event
	if f.containers != "" {
		data, err := readBounded(cmd.Context(), f.containers, cmd.InOrStdin())
		if err != nil {
			return err
		}
		there := func(name string) bool {
			for _, c := range state.Containers {
				if c.Name == name {
					return true
				}
			}
			return false
		}
		if events, err = placefile.Containers(f.containers, data, there); err != nil {
			return err
		}
	}
	placefile.Merge(state.Containers, shared, events)
	var out placement.Outcome
	if f.score {
		out, err = placement.Judge(state, events, placement.Budget{Moves: f.moves})
	} else {
		out, err = placement.Run(state, events)
	}
	if err != nil {
		return err
	}
	if f.out.json() {
		return jsonout.Write(cmd.OutOrStdout(), "place", view.NewJSON(out))
	}
	if err := view.Write(cmd.OutOrStdout(), out,
		view.Options{Width: terminal.Width(os.Stdout), ASCII: f.ascii || terminal.ASCII(), Color: terminal.Color(os.Stdout)}); err != nil {
		return err
	}
	sayNext(f.out, f.afterPlace(cmd, out))
	return nil
}

// check refuses calls that make no sense.
func (f *placeFlags) check(cmd *cobra.Command) error {
	if err := errors.Join(rejectEmptyFlags(cmd, "topology", "sysfs", "containers", "current", "order", "reserve", "unavailable"),
		rejectPairs(cmd, "topology", "both describe the machine", "sysfs")); err != nil {
		return err
	}
	switch {
	case f.score && f.current == "":
		return usage(cmd, "--score judges what is there: say with --current FILE who has which CPUs")
	case !f.score && f.containers == "":
		return usage(cmd, "--containers is missing: a YAML list such as '- {name: db, cpus: 8}'")
	case f.moves < 0:
		return usage(cmd, "--max-moves %d: give 0 or more", f.moves)
	}
	stdin := 0
	for _, name := range []string{f.topology, f.containers, f.current} {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return usage(cmd, "standard input can be one file only, not %d", stdin)
	}
	return rejectWithout(cmd, "score", f.score, "max-moves")
}

// state reads the node from the flags, without containers.
func (f *placeFlags) state(cmd *cobra.Command) (placement.State, error) {
	var s placement.State
	m, err := f.machine(cmd)
	if err != nil {
		return s, err
	}
	s.Machine = m
	for _, fault := range m.Faults {
		say("the machine's description: %s", text.Sanitize(fault, 0))
	}
	if s.Order, err = placement.ParseOrder(f.order); err != nil {
		return s, fmt.Errorf("--%w", err)
	}
	for _, list := range []struct {
		flag, text string
		into       *cpuset.CPUSet
	}{{"reserve", f.reserve, &s.Reserved}, {"unavailable", f.unavailable, &s.Unavailable}} {
		if *list.into, err = topology.ParseList(list.text); err != nil {
			return s, fmt.Errorf("--%s: %w", list.flag, err)
		}
		if absent := list.into.Difference(m.Present()); !absent.IsEmpty() {
			return s, fmt.Errorf("--%s: this machine has no CPUs %s: it has %s", list.flag, absent, m.Present())
		}
	}
	if err := remedy.CheckReserve(m, s.Reserved); err != nil {
		return s, fmt.Errorf("--reserve: %w", err)
	}
	return s, nil
}

func (f *placeFlags) machine(cmd *cobra.Command) (topology.Machine, error) {
	if f.topology == "" {
		return machineAt(cmd, f.sysfs)
	}
	data, err := readBounded(cmd.Context(), f.topology, cmd.InOrStdin())
	if err != nil {
		return topology.Machine{}, err
	}
	return placefile.Machine(f.topology, data)
}

// readBounded reads a file of at most placefile.MaxFile bytes.
func readBounded(ctx context.Context, name string, stdin io.Reader) ([]byte, error) {
	data, err := infile.ReadAll(ctx, name, stdin, placefile.MaxFile)
	if err != nil {
		return nil, err
	}
	if len(data) > placefile.MaxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes: no machine needs that much", name, placefile.MaxFile)
	}
	return data, nil
}
