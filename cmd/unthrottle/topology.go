package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	view "github.com/unthrottle/unthrottle/internal/ui/report/topology"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
	"github.com/unthrottle/unthrottle/topology"
)

func newTopology() *cobra.Command {
	var ascii bool
	var out output
	var sysfs string
	cmd := &cobra.Command{
		Use:     "topology",
		GroupID: groupLook,
		Short:   "Draw this machine's sockets, NUMA nodes, caches, cores and threads",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rejectEmptyFlags(cmd, "sysfs"); err != nil {
				return err
			}
			m, err := machineAt(cmd, sysfs)
			if err != nil {
				return err
			}
			if out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "topology", m)
			}
			return view.Write(cmd.OutOrStdout(), m, view.Options{
				Width: terminal.Width(os.Stdout), ASCII: ascii || terminal.ASCII(), Color: terminal.Color(os.Stdout),
			})
		},
	}
	out.add(cmd)
	cmd.Flags().StringVar(&sysfs, "sysfs", "/sys", "`DIR` that stands for /sys, such as a saved tree")
	shareSwitch(cmd, &ascii, "ascii", "")
	return cmd
}

// machineAt reads the machine from the folder of --sysfs. What is wrong with a folder that the user names is a
// fault of the input; the host's own that cannot be read is not measurable.
func machineAt(cmd *cobra.Command, sysfs string) (topology.Machine, error) {
	m, err := readSysfs(sysfs)
	if err != nil && !cmd.Flags().Changed("sysfs") {
		return m, exitWith{exitNotMeasurable, err}
	}
	return m, err
}

func readSysfs(dir string) (topology.Machine, error) {
	// To open a pipe would block.
	info, err := os.Stat(dir)
	if err != nil {
		return topology.Machine{}, missingFile(dir, err)
	}
	if !info.IsDir() {
		return topology.Machine{}, fmt.Errorf("%s: no folder: give one that stands for /sys", dir)
	}
	// A saved tree may come from anywhere: its links must not lead out of it.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return topology.Machine{}, err
	}
	defer root.Close()
	m, err := topology.Read(root.FS())
	if err != nil {
		return m, fmt.Errorf("%s: %w", dir, err)
	}
	return m, nil
}
