package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/ui/report"
	"github.com/unthrottle/unthrottle/topology"
)

func newTopology() *cobra.Command {
	var asJSON, ascii bool
	var sysfs string
	cmd := &cobra.Command{
		Use:     "topology",
		GroupID: groupLook,
		Short:   "Draw this machine's sockets, NUMA nodes, caches, cores and threads",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notEmpty(cmd, "sysfs"); err != nil {
				return err
			}
			// A saved tree may come from anywhere: its links must not lead out of it.
			root, err := os.OpenRoot(sysfs)
			if err != nil {
				return exitWith{exitNotMeasurable, err}
			}
			defer root.Close()
			m, err := topology.Read(root.FS())
			if err != nil {
				return exitWith{exitNotMeasurable, fmt.Errorf("%s: %w", sysfs, err)}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), m)
			}
			return report.Topology(cmd.OutOrStdout(), m, report.TopologyOptions{
				Width: terminalWidth(), ASCII: ascii, Color: useColor(os.Stdout),
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&sysfs, "sysfs", "/sys", "`DIR` that stands for /sys, such as a saved tree")
	cmd.Flags().BoolVar(&ascii, "ascii", false, "no lines beyond ASCII")
	return cmd
}
